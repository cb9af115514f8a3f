//! What OLM's type checker refuses, as far as it can be seen without a full checker, and how much
//! work a rule is. The parser bounds the depth of what it hands out, so the walks are bounded too.

use cel::{
    IdedExpr as Expression,
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators},
};

use super::BadRule;

/// What is known of a value's type before anything is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Null,
    List,
    Map,
    /// Only known when the rule is evaluated.
    Dynamic,
}

type Scope<'e> = Vec<(&'e str, Kind)>;

/// Refuses what is certain to go wrong; the answer is what it ends in.
pub(super) fn check(rule: &Expression, variables: &[(&str, Kind)]) -> Result<Kind, BadRule> {
    kind(rule, &mut variables.to_vec())
}

/// How many expressions are one within the other.
pub(super) fn depth(rule: &Expression) -> usize {
    1 + parts(rule).into_iter().map(depth).max().unwrap_or(0)
}

/// An upper bound of the steps of an evaluation where no list is longer than `size`.
pub(super) fn steps(rule: &Expression, size: usize) -> f64 {
    let all = |parts: &[&Expression]| -> f64 { parts.iter().map(|part| steps(part, size)).sum() };
    let Expr::Comprehension(of) = &rule.expr else { return 1.0 + all(&parts(rule)) };
    #[expect(clippy::cast_precision_loss, reason = "a rough bound is enough")]
    let rounds = size as f64;
    1.0 + all(&[&of.iter_range, &of.accu_init, &of.result])
        + rounds * all(&[&of.loop_cond, &of.loop_step])
}

fn parts(of: &Expression) -> Vec<&Expression> {
    match &of.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => vec![],
        Expr::Call(call) => call.target.iter().map(Box::as_ref).chain(&call.args).collect(),
        Expr::Comprehension(of) => {
            vec![&of.iter_range, &of.accu_init, &of.loop_cond, &of.loop_step, &of.result]
        }
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(|entry| of_entry(&entry.expr)).collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Struct(of) => of.entries.iter().flat_map(|entry| of_entry(&entry.expr)).collect(),
    }
}

fn of_entry(entry: &EntryExpr) -> Vec<&Expression> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}

fn kind<'e>(of: &'e Expression, scope: &mut Scope<'e>) -> Result<Kind, BadRule> {
    match &of.expr {
        Expr::Unspecified => Err(BadRule::NotBoolean),
        Expr::Struct(of) => Err(BadRule::Unknown { name: of.type_name.clone() }),
        Expr::Literal(literal) => Ok(match literal {
            LiteralValue::Boolean(_) => Kind::Bool,
            LiteralValue::Bytes(_) => Kind::Bytes,
            LiteralValue::Double(_) => Kind::Double,
            LiteralValue::Int(_) => Kind::Int,
            LiteralValue::Null => Kind::Null,
            LiteralValue::String(_) => Kind::Text,
            LiteralValue::UInt(_) => Kind::Uint,
        }),
        Expr::Ident(name) => {
            let known = scope.iter().rev().find(|(known, _)| *known == name.as_str());
            known.map(|(_, kind)| *kind).ok_or_else(|| BadRule::Unknown { name: name.clone() })
        }
        Expr::List(list) => {
            list.elements.iter().try_for_each(|element| kind(element, scope).map(drop))?;
            Ok(Kind::List)
        }
        Expr::Map(map) => {
            for entry in &map.entries {
                match &entry.expr {
                    EntryExpr::MapEntry(entry) => {
                        kind(&entry.key, scope)?;
                        kind(&entry.value, scope)?;
                    }
                    EntryExpr::StructField(field) => {
                        kind(&field.value, scope)?;
                    }
                }
            }
            Ok(Kind::Map)
        }
        Expr::Select(select) => match kind(&select.operand, scope)? {
            Kind::Map | Kind::Dynamic if select.test => Ok(Kind::Bool),
            Kind::Map | Kind::Dynamic => Ok(Kind::Dynamic),
            Kind::Bool
            | Kind::Int
            | Kind::Uint
            | Kind::Double
            | Kind::Text
            | Kind::Bytes
            | Kind::Null
            | Kind::List => Err(BadRule::Types { operation: format!(".{}", select.field) }),
        },
        Expr::Comprehension(comprehension) => loop_kind(comprehension, scope),
        Expr::Call(call) => call_kind(call, scope),
    }
}

fn loop_kind<'e>(of: &'e ComprehensionExpr, scope: &mut Scope<'e>) -> Result<Kind, BadRule> {
    let range = kind(&of.iter_range, scope)?;
    let is_list = match &of.iter_range.expr {
        Expr::Ident(name) => name == "properties",
        Expr::Unspecified
        | Expr::Call(_)
        | Expr::Comprehension(_)
        | Expr::List(_)
        | Expr::Literal(_)
        | Expr::Map(_)
        | Expr::Select(_)
        | Expr::Struct(_) => false,
    };
    if !matches!(range, Kind::List | Kind::Map | Kind::Dynamic) {
        return Err(BadRule::Types { operation: "a loop".to_owned() });
    }
    let result = kind(&of.accu_init, scope)?;
    let before = scope.len();
    scope.push((&of.iter_var, if is_list { Kind::Map } else { Kind::Dynamic }));
    scope.extend(of.iter_var2.as_deref().map(|name| (name, Kind::Dynamic)));
    scope.push((&of.accu_var, result));
    kind(&of.loop_cond, scope)?;
    kind(&of.loop_step, scope)?;
    let result = kind(&of.result, scope);
    scope.truncate(before);
    result
}

fn call_kind<'e>(call: &'e CallExpr, scope: &mut Scope<'e>) -> Result<Kind, BadRule> {
    let mut kinds = Vec::with_capacity(call.args.len() + 1);
    for part in call.target.iter().map(Box::as_ref).chain(&call.args) {
        kinds.push(kind(part, scope)?);
    }
    let wrong = || BadRule::Types { operation: call.func_name.clone() };
    let all_are =
        |wanted: &[Kind]| kinds.iter().all(|kind| *kind == Kind::Dynamic || wanted.contains(kind));
    let require = |holds: bool, result: Kind| if holds { Ok(result) } else { Err(wrong()) };
    let name = call.func_name.as_str();
    match (name, kinds.as_slice()) {
        (operators::LOGICAL_AND | operators::LOGICAL_OR, [_, _])
        | (operators::LOGICAL_NOT | operators::NOT_STRICTLY_FALSE, [_]) => {
            require(all_are(&[Kind::Bool]), Kind::Bool)
        }
        (operators::EQUALS | operators::NOT_EQUALS, [left, right]) => {
            require(is_same(*left, *right), Kind::Bool)
        }
        (
            operators::LESS
            | operators::LESS_EQUALS
            | operators::GREATER
            | operators::GREATER_EQUALS,
            [left, right],
        ) => {
            let ordered =
                [Kind::Bool, Kind::Int, Kind::Uint, Kind::Double, Kind::Text, Kind::Bytes];
            require(is_same(*left, *right) && all_are(&ordered), Kind::Bool)
        }
        (operators::CONDITIONAL, [condition, left, right]) => {
            let holds = is_same(*condition, Kind::Bool) && is_same(*left, *right);
            require(holds, if left == right { *left } else { Kind::Dynamic })
        }
        (operators::IN, [_, within]) => {
            require(matches!(within, Kind::List | Kind::Map | Kind::Dynamic), Kind::Bool)
        }
        (operators::INDEX, [of, _]) => {
            require(matches!(of, Kind::List | Kind::Map | Kind::Dynamic), Kind::Dynamic)
        }
        (operators::NEGATE, [of]) => require(all_are(&[Kind::Int, Kind::Double]), *of),
        (operators::ADD, [left, right]) => require(
            is_same(*left, *right)
                && all_are(&[NUMBERS, &[Kind::Text, Kind::Bytes, Kind::List]].concat()),
            if left == right { *left } else { Kind::Dynamic },
        ),
        (
            operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO,
            [left, right],
        ) => require(
            is_same(*left, *right) && all_are(NUMBERS),
            if left == right { *left } else { Kind::Dynamic },
        ),
        ("contains" | "startsWith" | "endsWith", [_, _]) if call.target.is_some() => {
            require(all_are(&[Kind::Text]), Kind::Bool)
        }
        ("matches", [_, _]) => require(all_are(&[Kind::Text]), Kind::Bool),
        ("size", [_]) => {
            require(all_are(&[Kind::Text, Kind::Bytes, Kind::List, Kind::Map]), Kind::Int)
        }
        ("semver_compare", [_, _]) if call.target.is_none() => Ok(Kind::Int),
        ("bool", [_]) => require(all_are(&[Kind::Bool, Kind::Text]), Kind::Bool),
        ("int", [_]) => require(all_are(CONVERTED), Kind::Int),
        ("uint", [_]) => require(all_are(CONVERTED), Kind::Uint),
        ("double", [_]) => require(all_are(CONVERTED), Kind::Double),
        ("string", [_]) => Ok(Kind::Text),
        ("bytes", [_]) => require(all_are(&[Kind::Text, Kind::Bytes]), Kind::Bytes),
        // Functions are an open set: whatever else there is, is not evaluated here.
        _ => Err(BadRule::Unknown { name: name.to_owned() }),
    }
}

const NUMBERS: &[Kind] = &[Kind::Int, Kind::Uint, Kind::Double];
const CONVERTED: &[Kind] = &[Kind::Int, Kind::Uint, Kind::Double, Kind::Text];

fn is_same(left: Kind, right: Kind) -> bool {
    left == right || left == Kind::Dynamic || right == Kind::Dynamic
}

//! Two catalogs, or two definitions, side by side.

use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;
use wavelift_catalog::{
    compare::{Operator, Verdict, compare},
    crd::{self, CrdDiff, Side},
};

use crate::{
    args::offline::{DiffArgs, DiffCrdArgs},
    exit::Exit,
    fault::Fault,
    offline::{
        self,
        lines::{Line, Lines},
    },
    printer::Printer,
    render,
};

/// `wavelift diff-crd`
pub(super) fn definitions(what: &DiffCrdArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let (old, new) = (definition(&what.old, Side::Old)?, definition(&what.new, Side::New)?);
    let diff = crd::diff(&old, &new).with_context(|| {
        let (old, new) = (what.old.display(), what.new.display());
        Fault::usage(format!("cannot compare {old} with {new}"))
    })?;
    let names = |diff: &CrdDiff| diff.by_rule.keys().cloned().collect();
    if !printer.machine(&diff, names)? {
        printer.text(&render::definitions(&diff, printer));
    }
    Ok(Exit::Success)
}

fn definition(path: &Path, side: Side) -> anyhow::Result<Value> {
    let bytes = offline::bytes(path)?;
    crd::parse(&bytes, side)
        .with_context(|| Fault::usage(format!("cannot read {}", path.display())))
}

/// `wavelift diff`
pub(super) fn catalogs(what: &DiffArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let operators = installed(what)?;
    let (old, new) = (offline::catalog(&what.old, printer)?, offline::catalog(&what.new, printer)?);
    let comparison = compare(&old, &new, &operators);
    let names = |comparison: &wavelift_catalog::compare::Comparison| {
        comparison.packages.keys().cloned().collect()
    };
    if !printer.machine(&comparison, names)? {
        printer.text(&render::comparison(&comparison, printer));
    }
    let is_lost = |verdict| match verdict {
        Verdict::Broken | Verdict::Stranded | Verdict::EndsEarlier => true,
        Verdict::Changed | Verdict::Same => false,
    };
    let is_any_lost = comparison.operators.iter().any(|one| is_lost(one.verdict));
    Ok(if what.exit_code && is_any_lost { Exit::Blocked } else { Exit::Success })
}

fn installed(what: &DiffArgs) -> anyhow::Result<Vec<Operator>> {
    let mut operators = vec![];
    for text in &what.installed {
        operators.push(operator(text)?);
    }
    if let Some(path) = &what.filename {
        let mut lines = Lines::open(path)?;
        while let Some(Line { number, text }) = lines.next()? {
            let wrong = || {
                let form = r#"an operator is {"package", "channel", "installed", "version"}"#;
                Fault::usage(format!("{} line {number}: {form}", path.display()))
            };
            let text = text.map_err(anyhow::Error::msg).with_context(wrong)?;
            operators.push(serde_json::from_str(&text).with_context(wrong)?);
        }
    }
    Ok(operators)
}

/// Reads `PACKAGE=CSV` or `PACKAGE@CHANNEL=CSV`.
fn operator(text: &str) -> anyhow::Result<Operator> {
    let form = "is not PACKAGE=CSV or PACKAGE@CHANNEL=CSV";
    let wrong = || Fault::usage(format!("`{text}` {form}"));
    let (what, installed) = text.split_once('=').ok_or_else(wrong)?;
    let (package, channel) = what.split_once('@').unwrap_or((what, ""));
    if package.is_empty() || installed.is_empty() {
        return Err(wrong().into());
    }
    Ok(Operator {
        package: package.to_owned(),
        channel: channel.to_owned(),
        installed: installed.to_owned(),
        version: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installed_operator_is_named_with_or_without_its_channel() {
        let read = |text| operator(text).map(|o| (o.package, o.channel, o.installed)).unwrap();
        let of = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
        assert_eq!(read("oak=oak.v1.0.0"), of("oak", "", "oak.v1.0.0"));
        assert_eq!(read("oak@stable=oak.v1"), of("oak", "stable", "oak.v1"));
        for bad in ["oak", "=x", "oak=", "@a=b"] {
            assert!(operator(bad).is_err(), "`{bad}`");
        }
    }
}

//! A value with the path to it, so that every complaint names a field.

use serde_json::Value;

use crate::fbc::FieldError;

/// A value somewhere in a document. What is absent and what is null is the same.
#[derive(Debug, Clone)]
pub(crate) struct View<'a> {
    path: String,
    value: Option<&'a Value>,
}

// === impl View ===

impl<'a> View<'a> {
    pub(crate) fn root(value: &'a Value) -> Self {
        Self::at(String::new(), value)
    }

    pub(crate) fn at(path: String, value: &'a Value) -> Self {
        Self { path, value: Some(value).filter(|value| !value.is_null()) }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn value(&self) -> Option<&'a Value> {
        self.value
    }

    pub(crate) fn wrong(&self, expected: &'static str) -> FieldError {
        FieldError::Kind { field: self.path.clone(), expected }
    }

    /// A field; absent where the value itself is absent.
    pub(crate) fn get(&self, field: &str) -> Result<Self, FieldError> {
        let path = match self.path.as_str() {
            "" => field.to_owned(),
            path => format!("{path}.{field}"),
        };
        let fields = match self.value {
            None => return Ok(Self { path, value: None }),
            Some(value) => value.as_object().ok_or_else(|| self.wrong("an object"))?,
        };
        let value = fields.get(field).filter(|value| !value.is_null());
        Ok(Self { path, value })
    }

    /// A field some levels down.
    pub(crate) fn find(&self, fields: &[&str]) -> Result<Self, FieldError> {
        fields.iter().try_fold(self.clone(), |view, field| view.get(field))
    }

    /// The items of a list; none where it is absent.
    pub(crate) fn items(&self) -> Result<impl Iterator<Item = View<'a>> + use<'a>, FieldError> {
        let items = match self.value {
            None => &[][..],
            Some(value) => value.as_array().ok_or_else(|| self.wrong("a list"))?,
        };
        let path = self.path.clone();
        let items = items.iter().enumerate();
        Ok(items.map(move |(index, value)| View::at(format!("{path}[{index}]"), value)))
    }

    /// A text, if there is one.
    pub(crate) fn text(&self) -> Result<Option<&'a str>, FieldError> {
        self.value.map(|value| value.as_str().ok_or_else(|| self.wrong("a text"))).transpose()
    }

    /// A text that must be there and not be empty.
    pub(crate) fn required_text(&self) -> Result<&'a str, FieldError> {
        self.text()?.filter(|text| !text.is_empty()).ok_or_else(|| self.wrong("a text"))
    }

    /// A list of texts; none where it is absent.
    pub(crate) fn texts(&self) -> Result<Vec<&'a str>, FieldError> {
        let texts = self.items()?.map(|item| item.text()?.ok_or_else(|| item.wrong("a text")));
        texts.collect()
    }
}

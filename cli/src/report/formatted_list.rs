//! A list that a template can print.

use crate::args::list_format::ListFormat;
use crate::error::CommandError;
use crate::output::{Report, ReportForm, Screen};
use serde::Serialize;
use serde_json::Value;

/// A list, printed as one line for each row if a template was given.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct FormattedList<R> {
    list: R,
    #[serde(skip)]
    lines: Option<String>,
}

impl<R> FormattedList<R> {
    /// Fills the template with the fields that rows have in JSON.
    ///
    /// # Errors
    ///
    /// Invalid if there are rows, and none of them has one of the fields of the template.
    pub fn new<T: Serialize>(
        list: R,
        format: Option<&ListFormat>,
        rows: impl FnOnce(&R) -> &[T],
    ) -> Result<Self, CommandError> {
        let Some(format) = format else { return Ok(Self { list, lines: None }) };
        let rows = rows(&list).iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>();
        let rows = rows.map_err(|error| {
            CommandError::internal("a row of a list is not JSON").caused_by(error)
        })?;
        let unknown = |name: &&str| rows.iter().all(|row| row.get(name).is_none());
        if let (Some(Value::Object(first)), Some(name)) =
            (rows.first(), format.fields().find(unknown))
        {
            let known = first.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(CommandError::invalid(format!("the rows have no field '{name}'"))
                .hinted(format!("they have {known}")));
        }
        let line = |row: &Value| format.fill(|name| field_text(row.get(name))) + "\n";
        let lines = Some(rows.iter().map(line).collect());
        Ok(Self { list, lines })
    }
}

/// Returns a field as text: nothing for null, words joined with commas.
fn field_text(field: Option<&Value>) -> String {
    match field {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) if items.iter().all(Value::is_string) => {
            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
        }
        Some(other) => other.to_string(),
    }
}

impl<R: Report> Report for FormattedList<R> {
    fn schema(&self) -> Option<&'static str> {
        self.list.schema()
    }

    fn exit_code(&self) -> u8 {
        self.list.exit_code()
    }

    fn take_failure(&mut self) -> Option<CommandError> {
        self.list.take_failure()
    }

    fn form(&self) -> ReportForm<'_> {
        self.lines.as_deref().map_or_else(|| self.list.form(), ReportForm::Text)
    }

    fn human(&self, screen: &mut Screen) {
        self.list.human(screen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Serialize)]
    struct FailedList {
        rows: Vec<u8>,
    }

    impl Report for FailedList {
        fn exit_code(&self) -> u8 {
            4
        }

        fn take_failure(&mut self) -> Option<CommandError> {
            Some(CommandError::invalid("no"))
        }
    }

    /// Regression: a list that a template can print lost its exit code and its failure.
    #[test]
    fn a_list_keeps_its_exit_code_and_failure() {
        let rows = vec![1];
        let mut list = FormattedList::new(FailedList { rows }, None, |list| &list.rows).unwrap();
        assert_eq!(list.exit_code(), 4);
        assert_eq!(list.take_failure().unwrap().message(), "no");
    }
}

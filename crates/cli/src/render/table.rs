//! Columns, two spaces apart; colours are added after the widths are known.

use crate::printer::{Printer, Tone};

/// One cell.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    text: String,
    tone: Option<Tone>,
    align: Align,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Align {
    Left,
    Right,
}

/// A table in the making.
#[derive(Debug)]
pub(super) struct Table {
    headers: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Cell {
    /// Text on one line, cut at 100 characters.
    pub(super) fn text(text: impl Into<String>) -> Self {
        let text: String = text.into();
        let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = if one_line.is_empty() { "-".to_owned() } else { one_line };
        Self { text: wavelift_api::convert::cut(&text, 100), tone: None, align: Align::Left }
    }

    /// A number; zero is a dash, for zeroes are not what one looks for.
    pub(super) fn number(number: impl Into<i64>) -> Self {
        let number: i64 = number.into();
        let text = if number == 0 { "-".to_owned() } else { number.to_string() };
        Self { text, tone: None, align: Align::Right }
    }

    pub(super) fn tone(mut self, tone: Tone) -> Self {
        self.tone = Some(tone);
        self
    }

    /// In `tone` when the number is not zero.
    pub(super) fn tone_if_any(self, tone: Tone) -> Self {
        if self.text == "-" { self } else { self.tone(tone) }
    }
}

impl Table {
    pub(super) fn new(headers: &[&'static str]) -> Self {
        Self { headers: headers.to_vec(), rows: vec![] }
    }

    pub(super) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    pub(super) fn render(&self, printer: &Printer) -> String {
        let widths: Vec<usize> = (0..self.headers.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                let widest = cells.map(|cell| cell.text.chars().count()).max().unwrap_or(0);
                let header = if printer.headers() { self.headers[column].len() } else { 0 };
                widest.max(header)
            })
            .collect();
        let mut text = String::new();
        if printer.headers() {
            let aligns: Vec<Align> = (0..self.headers.len())
                .map(|c| self.rows.first().and_then(|r| r.get(c)).map_or(Align::Left, |x| x.align))
                .collect();
            let cells = self.headers.iter().zip(aligns).map(|(header, align)| Cell {
                text: (*header).to_owned(),
                tone: None,
                align,
            });
            line(&mut text, &cells.collect::<Vec<_>>(), &widths, printer);
        }
        for row in &self.rows {
            line(&mut text, row, &widths, printer);
        }
        text
    }
}

fn line(text: &mut String, cells: &[Cell], widths: &[usize], printer: &Printer) {
    let mut whole = String::new();
    for (index, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let fill = " ".repeat(width.saturating_sub(cell.text.chars().count()));
        let shown = match cell.tone {
            Some(tone) => printer.paint().tone(tone, &cell.text),
            None => cell.text.clone(),
        };
        let gap = if index == 0 { "" } else { "  " };
        match cell.align {
            Align::Left => whole.push_str(&format!("{gap}{shown}{fill}")),
            Align::Right => whole.push_str(&format!("{gap}{fill}{shown}")),
        }
    }
    text.push_str(whole.trim_end());
    text.push('\n');
}

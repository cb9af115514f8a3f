//! What pages show of the program, against what it prints.
//!
//! A fenced block of kind `console` begins with a command, which is run in `docs/examples`; the rest
//! is what it prints. A line `...` stands for any lines. A block below the comment `<!-- as in FILE -->`
//! is what stands in that snapshot.

use std::fs;

use wavelift_runtime::testing::workspace_root;

use super::run;

const PAGES: [&str; 2] = ["docs/user/preview.md", "docs/reference/cli-json.md"];

/// A fenced block.
#[derive(Debug)]
struct Block<'a> {
    line: usize,
    kind: &'a str,
    /// The last line before it that holds something.
    before: &'a str,
    text: String,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = vec![];
    let (mut is_inside, mut before) = (false, "");
    for (index, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), is_inside) {
            (Some(kind), false) => {
                blocks.push(Block { line: index + 1, kind, before, text: String::new() });
                is_inside = true;
            }
            (Some(_), true) => is_inside = false,
            (None, true) => {
                let block = blocks.last_mut().unwrap();
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, false) if !line.trim().is_empty() => before = line,
            (None, false) => {}
        }
    }
    blocks
}

/// The words of a command, as a shell takes them; single quotes are all that is known.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![];
    for (index, part) in command.split('\'').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

/// Whether the text is what a block shows, in which `...` stands for any lines.
fn is_shown(block: &str, text: &str) -> bool {
    let (block, text): (Vec<&str>, Vec<&str>) = (block.lines().collect(), text.lines().collect());
    fits(&block, &text)
}

fn fits(block: &[&str], text: &[&str]) -> bool {
    match (block.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first.trim() == "..." => {
            (0..=text.len()).any(|skipped| fits(rest, &text[skipped..]))
        }
        (Some((first, rest)), Some((line, below))) => {
            first.trim_end() == line.trim_end() && fits(rest, below)
        }
        (None, Some(_)) | (Some(_), None) => false,
    }
}

/// The program's output below its command, or what is wrong with the block.
fn judge(block: &Block<'_>) -> Result<(), String> {
    let text = block.text.replace("\\\n", " ");
    let (command, expected) = text.split_once('\n').unwrap_or((&text, ""));
    let args = words(command);
    let ["$", "wavelift", args @ ..] = &*args.iter().map(String::as_str).collect::<Vec<_>>() else {
        return Err(format!("`{command}` is no command"));
    };
    // The block as it stands, where the line that goes on was only the command's.
    let said = run(&workspace_root().join("docs/examples"), args);
    let all = format!("{}{}", said.out, said.err);
    if is_shown(expected, &all) { Ok(()) } else { Err(format!("it prints\n{all}")) }
}

#[test]
fn pages_show_what_the_program_prints() {
    let root = workspace_root();
    let mut wrong = vec![];
    let mut commands = 0;
    for name in PAGES {
        let page = fs::read_to_string(root.join(name)).unwrap();
        for block in blocks(&page) {
            let judged = match block.before.strip_prefix("<!-- as in ") {
                Some(file) => {
                    let file = file.trim_end_matches(" -->");
                    let snapshot = fs::read_to_string(root.join(file)).unwrap();
                    // After the head, which ends with the second line of dashes.
                    let text = snapshot.splitn(3, "---\n").nth(2).unwrap().to_owned();
                    let same = is_shown(&block.text, &text);
                    if same { Ok(()) } else { Err(format!("the snapshot has\n{text}")) }
                }
                None if block.kind == "console" => {
                    commands += 1;
                    judge(&block)
                }
                None => Ok(()),
            };
            if let Err(why) = judged {
                wrong.push(format!("{name}:{}: {why}", block.line));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(commands >= 10, "{commands}");
}

#[test]
fn a_page_that_shows_something_else_is_noticed() {
    assert_eq!(words("$ a 'b c'  d"), ["$", "a", "b c", "d"]);
    assert!(is_shown("a\n...\nd\n", "a\nb\nc\nd\n") && is_shown("...\n", "") && is_shown("", ""));
    assert!(!is_shown("a\n...\nd\n", "a\nb\nc\n") && !is_shown("a\n", "a\nb\n"));
    let page = "x\n```console\n$ wavelift catalog show absent\nnothing\n```\n\n```json\n{}\n```\n";
    let found = blocks(page);
    assert_eq!((found.len(), found[0].line, found[1].before), (2, 2, "x"));
    assert!(judge(&found[0]).unwrap_err().contains("cannot read the catalog absent"));
}

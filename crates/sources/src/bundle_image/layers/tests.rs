use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use tar::{Builder, EntryType, Header};

use super::*;

/// One entry of a layer.
enum Item<'a> {
    File(&'a str, &'a str),
    Folder(&'a str),
    Link(&'a str, EntryType),
}

fn layer(items: &[Item<'_>]) -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    for item in items {
        let (path, kind, content) = match item {
            Item::File(path, content) => (*path, EntryType::Regular, *content),
            Item::Folder(path) => (*path, EntryType::Directory, ""),
            Item::Link(path, kind) => (*path, *kind, ""),
        };
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        // The name as it stands, which the library would not write where it is not sound.
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_cksum();
        archive.append(&header, content.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn folders() -> [Folder; 2] {
    [
        Folder { path: "manifests".to_owned(), name: "manifests" },
        Folder { path: "meta/data".to_owned(), name: "metadata" },
    ]
}

fn shown(layers: &[Vec<u8>]) -> Result<String, Error> {
    let files = unpack(layers, &folders(), &Limits::default())?;
    let files =
        files.iter().map(|(path, content)| format!("{path}={}", String::from_utf8_lossy(content)));
    Ok(files.collect::<Vec<_>>().join(" "))
}

#[test]
fn only_files_directly_in_the_folders_count() {
    let plain = layer(&[
        Item::Folder("manifests/"),
        Item::File("./manifests/a.yaml", "1"),
        Item::File("/manifests//b.yaml", "2"),
        Item::File("manifests/deeper/c.yaml", "3"),
        Item::File("meta/data/annotations.yaml", "4"),
        Item::File("meta/other.yaml", "5"),
        Item::File("bin/sh", "6"),
        Item::Link("bin/bash", EntryType::Symlink),
    ]);
    let expected = "manifests/a.yaml=1 manifests/b.yaml=2 metadata/annotations.yaml=4";
    assert_eq!(shown(std::slice::from_ref(&plain)).unwrap(), expected);
    assert_eq!(shown(&[gzip(&plain)]).unwrap(), expected);
}

#[test]
fn upper_layers_replace_and_take_away() {
    let lower = || {
        layer(&[
            Item::File("manifests/a", "1"),
            Item::File("manifests/b", "1"),
            Item::File("meta/data/x", "1"),
        ])
    };
    for (upper, expected) in [
        (vec![Item::File("manifests/a", "2")], "manifests/a=2 manifests/b=1 metadata/x=1"),
        (vec![Item::File("manifests/.wh.a", "")], "manifests/b=1 metadata/x=1"),
        (vec![Item::File(".wh.manifests", "")], "metadata/x=1"),
        (vec![Item::File(".wh.meta", "")], "manifests/a=1 manifests/b=1"),
        // What the same layer brings stays, whatever the order.
        (
            vec![Item::File("manifests/c", "2"), Item::File("manifests/.wh..wh..opq", "")],
            "manifests/c=2 metadata/x=1",
        ),
        (vec![Item::File(".wh.man", "")], "manifests/a=1 manifests/b=1 metadata/x=1"),
        // A file in place of a folder, and the other way round.
        (vec![Item::File("manifests", "2")], "metadata/x=1"),
        (vec![Item::Folder("manifests/a")], "manifests/b=1 metadata/x=1"),
    ] {
        assert_eq!(shown(&[lower(), layer(&upper)]).unwrap(), expected);
    }
}

#[test]
fn nothing_leads_out_of_the_image() {
    for path in ["../manifests/a", "manifests/../../a", "bin/.."] {
        let error = shown(&[layer(&[Item::File(path, "1")])]).unwrap_err();
        assert_eq!(error.to_string(), format!("layer 1 holds the path `{path}`"));
    }
    for (path, kind) in [
        ("manifests/a", EntryType::Symlink),
        ("manifests/a", EntryType::Link),
        ("manifests/a", EntryType::Char),
        ("manifests", EntryType::Symlink),
        ("meta", EntryType::Symlink),
    ] {
        let error = shown(&[layer(&[Item::Link(path, kind)])]).unwrap_err();
        assert_eq!(error.to_string(), format!("`{path}` is a link or a special file"));
    }
}

#[test]
fn broken_layers_are_named() {
    let good = layer(&[Item::File("manifests/a", &"x".repeat(4000))]);
    let mut wrong_sum = good.clone();
    wrong_sum[0] ^= 1;
    let packed = gzip(&good);
    for (second, expected) in [
        (packed[..packed.len() / 2].to_vec(), "layer 2 is not a whole archive"),
        (good[..2000].to_vec(), "layer 2 is not a whole archive"),
        (wrong_sum, "layer 2 is not a whole archive"),
        ([ZSTD_MAGIC, b"..."].concat(), "layer 2 is packed with zstd, which is not supported"),
    ] {
        let error = shown(&[good.clone(), second]).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn an_archive_may_lack_its_end_but_no_file_its_own() {
    let whole = layer(&[Item::File("manifests/a", &"x".repeat(1000))]);
    let expected = format!("manifests/a={}", "x".repeat(1000));
    for end in [whole.len(), whole.len() - 512, whole.len() - 1024, 512 + 1000 + 5, 512 + 1000] {
        assert_eq!(shown(&[whole[..end].to_vec()]).unwrap(), expected, "{end}");
        assert_eq!(shown(&[gzip(&whole[..end])]).unwrap(), expected, "{end}");
    }
    for end in [512 + 999, 512 + 600, 512 + 512, 512, 100] {
        let error = shown(&[whole[..end].to_vec()]).unwrap_err();
        assert_eq!(error.to_string(), "layer 1 is not a whole archive", "{end}");
    }
}

#[test]
fn each_limit_ends_the_unpacking() {
    let large = "x".repeat(5000);
    let layers = [
        gzip(&layer(&[Item::File("manifests/a", &large), Item::File("bin/b", &large)])),
        gzip(&layer(&[Item::File("manifests/b", "1"), Item::File("manifests/c", "1")])),
    ];
    let limits = Limits::default();
    assert!(unpack(&layers, &folders(), &limits).is_ok());
    for (limits, expected) in [
        (Limits { unpacked_bytes: 12_000, ..limits }, "more than 12000 bytes when unpacked"),
        (Limits { entries: 3, ..limits }, "more than 3 entries"),
        (Limits { files: 2, ..limits }, "more than 2 files"),
        (Limits { file_bytes: 4999, ..limits }, "more than 4999 bytes in one file"),
        (Limits { files_bytes: 5001, ..limits }, "more than 5001 bytes of files"),
    ] {
        let error = unpack(&layers, &folders(), &limits).unwrap_err();
        assert!(error.to_string().ends_with(expected), "{error}");
    }
}

#[test]
fn a_bomb_costs_no_more_than_the_limit() {
    // 64 MiB of nothing in 64 KiB, as the name of a file and as a file that nobody wants.
    let zeros = vec![0; 64 << 20];
    let mut header = Header::new_gnu();
    header.set_size(zeros.len() as u64);
    for (kind, path) in [(EntryType::GNULongName, "././@LongLink"), (EntryType::Regular, "bin/b")] {
        header.set_entry_type(kind);
        header.set_path(path).unwrap();
        header.set_cksum();
        let bomb = gzip(&[header.as_bytes().as_slice(), &zeros].concat());
        assert!(bomb.len() < 1 << 20);
        let limits = Limits { unpacked_bytes: 1 << 20, ..Limits::default() };
        let error = unpack(&[bomb], &folders(), &limits).unwrap_err();
        assert_eq!(error.to_string(), "the image has more than 1048576 bytes when unpacked");
    }
}

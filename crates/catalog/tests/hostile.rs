//! Catalogs that somebody made to do harm: a clear error, in bounded time and memory.
//!
//! They are made here, byte by byte. What a machine would notice is looked at in the end of each
//! test: all of them together must get by with little memory.

#[cfg(test)]
#[path = "hostile/bundles.rs"]
mod bundles;

#[cfg(test)]
#[path = "hostile/resolve.rs"]
mod resolve;

#[cfg(test)]
mod hostile {
    use std::{error::Error as _, fmt::Write as _, fs, os::unix, path::Path, sync::Arc};

    use wavelift_catalog::{
        Catalog, Fbc, Limits,
        catalog::ChainError,
        engine::olm_v1::{ClusterCatalog, Content, Query, Reply, answer},
        fbc::Error,
        validate::{Rule, validate},
    };

    /// What this whole test may take at its highest, in MiB.
    const MEMORY_MAX: u64 = 768;

    /// Looks at the memory that the process has taken at most, where the system tells.
    #[track_caller]
    pub(crate) fn check_memory() {
        let Ok(status) = fs::read_to_string("/proc/self/status") else { return };
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kib: u64 = peak.trim().trim_end_matches("kB").trim().parse().unwrap();
        assert!(kib < MEMORY_MAX << 10, "{} MiB", kib >> 10);
    }

    /// The error of a file with its causes in one text.
    #[track_caller]
    fn refused(content: &[u8]) -> String {
        let error = Fbc::parse("file", content, &Limits::default()).unwrap_err();
        check_memory();
        told(&error)
    }

    fn told(error: &Error) -> String {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            write!(text, ": {error}").unwrap();
            cause = error.source();
        }
        text
    }

    #[track_caller]
    fn refused_tree(path: &Path, limits: &Limits) -> String {
        let error = Fbc::read(path, limits).unwrap_err();
        check_memory();
        told(&error)
    }

    #[test]
    fn deep_nesting() {
        for open in ["[", "{\"a\":"] {
            let deep = open.repeat(1_000_000);
            let json = refused(format!("{{\"schema\":\"a\",\"a\":{deep}").as_bytes());
            assert!(json.starts_with("file, document 1: not JSON"), "{json}");
            let yaml = refused(format!("schema: a\na: {deep}").as_bytes());
            assert!(yaml.starts_with("file, document 1: not YAML: line 2"), "{yaml}");
        }
        let closed = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        let json = refused(format!("{{\"schema\":\"a\",\"a\":{closed}}}").as_bytes());
        assert!(json.contains("levels of nesting, more than 64"), "{json}");
        let mut blocks = String::new();
        for depth in 0..1000 {
            writeln!(blocks, "{}a:", " ".repeat(depth)).unwrap();
        }
        let yaml = refused(format!("schema: a\nb:\n{blocks}").as_bytes());
        assert!(yaml.contains("not YAML"), "{yaml}");
    }

    #[test]
    fn alias_bombs() {
        let mut lists = String::from("schema: a\nl0: &l0 [x, x, x, x, x, x, x, x, x]\n");
        for level in 1..30 {
            let before = format!("*l{},", level - 1).repeat(9);
            writeln!(lists, "l{level}: &l{level} [{before}]").unwrap();
        }
        let text = refused(lists.as_bytes());
        assert!(text.contains("aliases make too much of it"), "{text}");
        // Merge keys take the other way through YAML.
        let mut merges = String::from("schema: a\nm0: &m0 {a: x}\n");
        for level in 1..30 {
            let before = format!("*m{},", level - 1).repeat(9);
            writeln!(merges, "m{level}: &m{level} {{<<: [{before}], l: [{before}]}}").unwrap();
        }
        let text = refused(merges.as_bytes());
        assert!(text.starts_with("file, document 1: not YAML"), "{text}");
    }

    #[test]
    fn a_gigabyte_is_refused_before_it_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let sparse = |name: &str, size: u64| {
            fs::File::create(dir.path().join(name)).unwrap().set_len(size).unwrap();
        };
        sparse("one", 1 << 30);
        let text = refused_tree(dir.path(), &Limits::default());
        assert!(text.ends_with("one has 1073741824 bytes, more than 268435456"), "{text}");
        fs::remove_file(dir.path().join("one")).unwrap();
        for index in 0..5 {
            sparse(&format!("part-{index}"), 200 << 20);
        }
        let text = refused_tree(dir.path(), &Limits::default());
        assert!(text.contains("part-2 has 629145600 bytes together"), "{text}");
    }

    #[test]
    fn more_bundles_than_there_may_be() {
        let limits = Limits { entries: 1000, file_documents: 100_000, ..Limits::default() };
        let bundle = r#"{"schema":"olm.bundle","package":"p","name":"n"}"#;
        let many = bundle.repeat(100_000);
        let error = Fbc::parse("file", many.as_bytes(), &limits).unwrap_err();
        assert_eq!(told(&error), "file has 1001 bundles, more than 1000");
        let entries =
            format!(r#"{{"schema":"olm.channel","entries":[{}{{}}]}}"#, "{},".repeat(100_000));
        let error = Fbc::parse("file", entries.as_bytes(), &limits).unwrap_err();
        assert_eq!(told(&error), "file has 1001 channel entries, more than 1000");
        // Over several files, each of which would do.
        let dir = tempfile::tempdir().unwrap();
        for index in 0..5 {
            fs::write(dir.path().join(index.to_string()), bundle.repeat(300)).unwrap();
        }
        let text = refused_tree(dir.path(), &limits);
        assert!(text.contains("bundles or channel entries, more than 1000"), "{text}");
        let few = Limits { file_documents: 2_000, file_nodes: 100_000, ..limits };
        let documents = "schema: a\n---\n".repeat(2_001);
        let error = Fbc::parse("file", documents.as_bytes(), &few).unwrap_err();
        assert_eq!(told(&error), "file has 2001 documents, more than 2000");
        let values = format!("{{\"schema\":\"a\",\"a\":[{}1]}}", "1,".repeat(100_000));
        let error = Fbc::parse("file", values.as_bytes(), &few).unwrap_err();
        assert_eq!(told(&error), "file has 100004 values, more than 100000");
    }

    #[test]
    fn text_that_is_none() {
        let text = refused(b"schema: a\nname: \xff\xfe\n");
        assert_eq!(text, "file, line 2: not UTF-8");
        let text = refused(b"{\"schema\":\"a\"}\n{\"schema\":\"\xc3\"}");
        assert_eq!(text, "file, line 2: not UTF-8");
        let text = refused(b"{\"schema\":\"\\ud800\"}");
        assert!(text.ends_with("field `schema` is not a text"), "{text}");
        let nul = refused(&[0; 4096]);
        assert!(nul.contains("not YAML") || nul.contains("no object"), "{nul}");
    }

    fn channel(entries: &str) -> Fbc {
        let text = format!(
            "{{\"schema\":\"olm.package\",\"name\":\"p\",\"defaultChannel\":\"c\"}}
             {{\"schema\":\"olm.channel\",\"package\":\"p\",\"name\":\"c\",\"entries\":[{entries}]}}"
        );
        Fbc::parse("file", text.as_bytes(), &Limits::default()).unwrap()
    }

    #[test]
    fn circles() {
        let mut entries = String::from(r#"{"name":"head","replaces":"n0"}"#);
        for index in 0..50_000 {
            write!(entries, r#",{{"name":"n{index}","replaces":"n{}"}}"#, (index + 1) % 50_000)
                .unwrap();
        }
        let fbc = channel(&entries);
        let is_circle = |rule: &Rule| matches!(rule, Rule::Circle { entry } if entry == "n0");
        assert!(validate(&fbc).iter().any(|problem| is_circle(&problem.rule)));
        let mut fbc = fbc;
        for entry in fbc.channels[0].entries.clone() {
            let bundle = wavelift_catalog::fbc::Bundle {
                package: "p".to_owned(),
                name: entry.name,
                ..Default::default()
            };
            fbc.bundles.push(bundle);
        }
        let catalog = Catalog::from_fbc(fbc, &Limits::default()).unwrap();
        assert!(matches!(catalog.head("p", "c"), Err(ChainError::Circle { .. })));
        // Fifty thousand heads are counted, not all named.
        let names: Vec<String> = (0..50_000).map(|index| format!("h{index}")).collect();
        let heads = ChainError::SeveralHeads { heads: names }.to_string();
        assert!(heads.starts_with("channel has 50000 heads: h0, h1,"), "{heads}");
        assert!(heads.ends_with(" and 49950 more"), "{heads}");
        check_memory();
        let all_in_a_circle = channel(r#"{"name":"a","replaces":"b"},{"name":"b","replaces":"a"}"#);
        assert!(validate(&all_in_a_circle).iter().any(|problem| problem.rule == Rule::NoHead));
    }

    #[test]
    fn a_million_skips() {
        let skips = |count: usize| {
            let names: Vec<String> = (0..count).map(|index| format!("\"n{index}\"")).collect();
            format!(
                r#"{{"schema":"olm.channel","package":"p","name":"c","entries":[{{"name":"a","skips":[{}]}}]}}"#,
                names.join(",")
            )
        };
        let text = refused(skips(1_000_000).as_bytes());
        assert_eq!(text, "file has 1000000 skipped entries, more than 500000");
        // Over several files, each of which would do.
        let dir = tempfile::tempdir().unwrap();
        for index in 0..3 {
            fs::write(dir.path().join(index.to_string()), skips(2_500)).unwrap();
        }
        let limits = Limits { skips: 5_000, ..Limits::default() };
        let text = refused_tree(dir.path(), &limits);
        assert!(text.contains("7500 skipped entries together with the files"), "{text}");
        let twice = [skips(3_000), skips(3_000)]
            .map(|text| Fbc::parse("file", text.as_bytes(), &limits).unwrap().channels);
        let both = Fbc { channels: twice.concat(), ..Fbc::default() };
        let error = Catalog::from_fbc(both, &limits).unwrap_err();
        assert_eq!(error.to_string(), "graph has 6000 skipped entries, more than 5000");
    }

    #[test]
    fn more_values_than_there_may_be_in_all_files() {
        let dir = tempfile::tempdir().unwrap();
        for index in 0..5 {
            let values = "1,".repeat(1000);
            let text = format!(r#"{{"schema":"a.b","x":[{values}1]}}"#);
            fs::write(dir.path().join(index.to_string()), text).unwrap();
        }
        let limits = Limits { total_nodes: 4000, ..Limits::default() };
        let text = refused_tree(dir.path(), &limits);
        assert!(
            text.contains("values together with the files before it, more than 4000"),
            "{text}"
        );
        let fbc = Fbc::read(dir.path(), &Limits::default()).unwrap();
        let error = Catalog::from_fbc(fbc, &limits).unwrap_err();
        assert_eq!(error.to_string(), "graph has 5020 values in other documents, more than 4000");
        // Of a file that ends in an error, what came before counts all the same.
        for index in 0..5 {
            let path = dir.path().join(index.to_string());
            let text = fs::read_to_string(&path).unwrap();
            fs::write(path, text + "{").unwrap();
        }
        let (_, errors) = Fbc::read_all(dir.path(), &limits);
        assert!(errors.iter().any(|error| error.kind() == "TooLarge"), "{errors:?}");
    }

    #[test]
    fn a_hundred_thousand_wrong_documents_are_counted_through_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "{\"name\":\"x\"}\n".repeat(100_000)).unwrap();
        let (_, errors) = Fbc::read_all(&path, &Limits::default());
        assert_eq!(errors.len(), 100_000);
        assert!(told(&errors[0]).ends_with("document 1 (line 1): `schema` is missing"));
        assert!(
            told(&errors[99_999]).ends_with("document 100000 (line 100000): `schema` is missing")
        );
        check_memory();
    }

    #[test]
    fn many_deprecations() {
        let mut text = String::from(r#"{"schema":"olm.package","name":"p","defaultChannel":"c"}"#);
        let mut entries = Vec::new();
        for index in 0..50_000 {
            write!(text, r#"{{"schema":"olm.bundle","package":"p","name":"n{index}"}}"#).unwrap();
            let reference = format!(r#"{{"schema":"olm.bundle","name":"n{index}"}}"#);
            entries.push(format!(r#"{{"reference":{reference},"message":"m"}}"#));
        }
        let entries = entries.join(",");
        write!(text, r#"{{"schema":"olm.deprecations","package":"p","entries":[{entries}]}}"#)
            .unwrap();
        let fbc = Fbc::parse("file", text.as_bytes(), &Limits::default()).unwrap();
        let unknown = |rule: &Rule| matches!(rule, Rule::UnknownReference { .. });
        assert!(!validate(&fbc).iter().any(|problem| unknown(&problem.rule)));
        // The engine of OLM v1 finds each by its name too.
        let content = Arc::new(Content::from_fbc(&fbc));
        let catalogs = [ClusterCatalog { name: "c".to_owned(), priority: 0, content }];
        let query = Query { package: "p".to_owned(), ..Query::default() };
        assert!(matches!(answer(&catalogs, &query), Reply::Error(_)));
        check_memory();
    }

    #[test]
    fn names_of_a_megabyte() {
        let long = "x".repeat(1 << 20);
        for text in [
            format!(r#"{{"schema":"{long}"}}"#),
            format!(r#"{{"schema":"olm.bundle","name":"{long}"}}"#),
            format!(r#"{{"schema":"olm.bundle","image":"{long}"}}"#),
            format!(r#"{{"schema":"olm.channel","entries":[{{"replaces":"{long}"}}]}}"#),
            format!(r#"{{"schema":"olm.channel","entries":[{{"skips":["{long}"]}}]}}"#),
            format!(r#"{{"schema":"olm.channel","entries":[{{"skipRange":"{long}"}}]}}"#),
        ] {
            let text = refused(text.as_bytes());
            assert_eq!(text, "file has 1048576 bytes in a name, more than 4096");
        }
        // What is wrong with other texts is told, but not all of them.
        let folded = refused(format!(r#"{{"schema":"a","x{long}":1,"X{long}":1}}"#).as_bytes());
        assert!(folded.contains("once, in upper and lower case") && folded.len() < 500, "{folded}");
        let property = format!(r#"{{"type":"{long}"}},{{"type":"olm.gvk","value":"{long}"}}"#);
        let bundle = format!(
            r#"{{"schema":"olm.bundle","package":"p","name":"b","properties":[{property}]}}"#
        );
        let text = format!(r#"{{"schema":"olm.package","name":"p"}}{bundle}"#);
        let fbc = Fbc::parse("file", text.as_bytes(), &Limits::default()).unwrap();
        let problems = validate(&fbc);
        assert!(problems.iter().any(|problem| matches!(problem.rule, Rule::NoValue { .. })));
        assert!(problems.iter().any(|problem| matches!(problem.rule, Rule::Property { .. })));
        assert!(problems.iter().all(|problem| problem.to_string().len() < 10_000));
        // A field of a megabyte that nobody reads is no harm.
        let text = format!(r#"{{"schema":"olm.package","name":"p","{long}":1}}"#);
        assert!(Fbc::parse("file", text.as_bytes(), &Limits::default()).is_ok());
    }

    #[test]
    fn what_a_folder_may_hold_instead_of_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("a"), "schema: a.b").unwrap();
        let read = || Fbc::read(dir.path(), &Limits::default());
        // A link to a folder above is not followed.
        unix::fs::symlink(dir.path(), path("above")).unwrap();
        assert_eq!(read().unwrap().others.len(), 1);
        // A link to itself can't be read.
        unix::fs::symlink(path("itself"), path("itself")).unwrap();
        assert!(told(&read().unwrap_err()).starts_with("can't read"));
        fs::remove_file(path("itself")).unwrap();
        // A device without end, and something that would be waited for.
        unix::fs::symlink("/dev/zero", path("device")).unwrap();
        assert!(told(&read().unwrap_err()).ends_with("device is neither a file nor a folder"));
        assert!(Fbc::read(Path::new("/dev/zero"), &Limits::default()).is_err());
        fs::remove_file(path("device")).unwrap();
        let pipe = std::process::Command::new("mkfifo").arg(path("pipe")).status();
        if pipe.is_ok_and(|status| status.success()) {
            assert!(told(&read().unwrap_err()).ends_with("pipe is neither a file nor a folder"));
            fs::remove_file(path("pipe")).unwrap();
        }
        let socket = unix::net::UnixListener::bind(path("socket")).unwrap();
        assert!(told(&read().unwrap_err()).ends_with("socket is neither a file nor a folder"));
        drop(socket);
        fs::remove_file(path("socket")).unwrap();
        let mut deep = dir.path().to_owned();
        for _ in 0..70 {
            deep.push("d");
        }
        fs::create_dir_all(&deep).unwrap();
        assert!(told(&read().unwrap_err()).contains("nested folders, more than 64"));
        check_memory();
    }

    #[test]
    fn many_files() {
        let dir = tempfile::tempdir().unwrap();
        for index in 0..300 {
            fs::write(dir.path().join(format!("f{index:03}")), "schema: a.b").unwrap();
        }
        let limits = Limits { files: 299, ..Limits::default() };
        assert!(refused_tree(dir.path(), &limits).ends_with("300 files, more than 299"));
        assert_eq!(Fbc::read(dir.path(), &Limits::default()).unwrap().others.len(), 300);
        // The first error in the order of names is the one that is told, whoever reads fastest.
        for index in [100, 17, 250] {
            fs::write(dir.path().join(format!("f{index:03}")), "schema: [").unwrap();
        }
        for _ in 0..20 {
            let text = refused_tree(dir.path(), &Limits::default());
            assert!(text.contains("f017, document 1: not YAML"), "{text}");
        }
        let (fbc, errors) = Fbc::read_all(dir.path(), &Limits::default());
        assert_eq!((fbc.others.len(), errors.len()), (297, 3));
    }

    #[test]
    fn files_that_end_too_early() {
        let json = r#"{"schema":"a.b"}{"schema":"a.c","x":{"y":[1,"#;
        assert!(refused(json.as_bytes()).contains("document 2: not JSON: EOF"));
        for yaml in ["schema: a\nx: {y: [1,", "schema: a\nx: \"never", "schema: a\n? "] {
            let text = refused(yaml.as_bytes());
            assert!(text.contains("document 1: not YAML: line"), "{yaml}: {text}");
        }
    }

    #[test]
    fn names_that_are_there_twice() {
        let text = "schema: a.b\nname: x\nNAME: y\n";
        assert!(
            refused(text.as_bytes())
                .ends_with("`name` is there more than once, in upper and lower case")
        );
        // The very same name twice: the last one counts, as for OLM's own tools.
        let text = r#"{"schema":"olm.package","name":"a","name":"b","defaultChannel":"x"}"#;
        let fbc = Fbc::parse("file", text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(fbc.packages[0].name, "b");
    }
}

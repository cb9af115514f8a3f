//! Nothing leaves the machine: an upgrade on real servers runs where there is nothing but loopback,
//! and every address that any of its processes asks for is looked at.

use std::{env, ffi::OsString, fs, process::Command};

use anyhow::{Context as _, Result, ensure};
use wavelift_runtime::testing::{is_long, program, skip};

use super::Programs;

/// The test that is run there: two hops, from an order to the end.
const INSIDE: &str = "servers::upgrades::real::a_path_of_two_hops_is_gone_hop_by_hop";
/// A network namespace in which nothing is up but loopback.
const APART: [&str; 6] =
    ["unshare", "--net", "--map-root-user", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""];
/// Whoever is asked for is written down, by every process and its children.
const WATCHED: [&str; 6] = [
    "strace",
    "--follow-forks",
    "--seccomp-bpf",
    "--quiet=all",
    "-e",
    "trace=connect,sendto,sendmsg,sendmmsg",
];

#[test]
fn an_upgrade_on_real_servers_asks_for_no_address_but_loopback() {
    if !is_long() || Programs::or_skip().is_none() {
        return;
    }
    let is_apart = runs(&[&APART[..], &["true"]].concat());
    let is_watched = program("strace").is_some() && runs(&[&WATCHED[..], &["true"]].concat());
    if !is_apart && !is_watched {
        skip("a network namespace or strace", "allow one of them");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    let mut words: Vec<OsString> = vec![];
    if is_apart {
        words.extend(APART.map(Into::into));
    }
    if is_watched {
        words.extend(WATCHED.map(Into::into));
        words.extend(["-o".into(), trace.clone().into()]);
    }
    run(words).unwrap();
    if !is_watched {
        return;
    }
    let trace = fs::read_to_string(trace).unwrap();
    let (asked, elsewhere) = read(&trace);
    assert!(asked > 100, "only {asked} addresses were seen");
    assert!(elsewhere.is_empty(), "{} of {asked}:\n{}", elsewhere.len(), elsewhere.join("\n"));
}

fn runs(words: &[&str]) -> bool {
    let status = Command::new(words[0]).args(&words[1..]).output();
    status.is_ok_and(|output| output.status.success())
}

/// Runs that test again, behind these words.
fn run(mut words: Vec<OsString>) -> Result<()> {
    words.push(env::current_exe()?.into());
    words.extend([INSIDE, "--exact", "--nocapture"].map(Into::into));
    let output = Command::new(&words[0]).args(&words[1..]).output().context("cannot start it")?;
    let told = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && told.contains("1 passed"), "{told}\n{failed}");
    ensure!(!failed.contains("left out"), "it was left out: {failed}");
    Ok(())
}

/// How many addresses of the network were asked for, and the lines with those that are not
/// loopback's, or that look up a name.
fn read(trace: &str) -> (usize, Vec<&str>) {
    let is_network = |line: &&str| line.contains("AF_INET") && line.contains("_port=");
    let network = trace.lines().filter(is_network);
    let elsewhere = |line: &&str| {
        let is_loopback = line.contains("inet_addr(\"127.")
            || line.contains("AF_INET6, \"::1\"")
            || line.contains("AF_INET6, \"::ffff:127.");
        !is_loopback || line.contains("htons(53)")
    };
    let by_socket = |line: &&str| line.contains("/run/systemd/resolve");
    let asked = network.clone().count();
    (asked, network.filter(elsewhere).chain(trace.lines().filter(by_socket)).collect())
}

#[test]
fn a_trace_is_read_as_strace_writes_it() {
    let inside = "\
7 connect(9, {sa_family=AF_INET, sin_port=htons(6443), sin_addr=inet_addr(\"127.0.0.1\")}, 16) = 0
7 connect(9, {sa_family=AF_INET6, sin6_port=htons(1), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, \"::1\", &sin6_addr), sin6_scope_id=0}, 28) = 0
7 sendto(3, [{nlmsg_len=20}], 20, 0, {sa_family=AF_NETLINK, nl_pid=0, nl_groups=00000000}, 12) = 20
7 connect(4, {sa_family=AF_UNIX, sun_path=\"/var/run/nscd/socket\"}, 110) = -1 ENOENT
7 sendto(5, \"GET / HTTP/1.1\", 14, MSG_NOSIGNAL, NULL, 0) = 14
";
    assert_eq!(read(inside), (2, vec![]));
    let outside = [
        "7 connect(9, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr(\"192.0.2.7\")}, 16) = -1 ENETUNREACH",
        "7 connect(9, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr(\"127.0.0.53\")}, 16) = 0",
        "7 connect(9, {sa_family=AF_INET6, sin6_port=htons(443), inet_pton(AF_INET6, \"2001:db8::1\", &sin6_addr)}, 28) = -1",
    ];
    assert_eq!(read(&outside.join("\n")), (3, outside.to_vec()));
}

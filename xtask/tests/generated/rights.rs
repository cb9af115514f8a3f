//! The page about the agent's rights, from their own list.

use std::fmt::Write as _;

use wavelift_agent::rights::{AGGREGATE, Grant, Place, RIGHTS};

/// One table for each setting that gives rights.
pub(crate) fn markdown(note: &str) -> String {
    let mut page = format!("<!-- {note} -->\n\n# What the agent may do\n");
    for grant in Grant::ALL {
        let role = grant.role();
        match grant.setting() {
            None => writeln!(page, "\nAlways, by `charts/wavelift/rbac/{role}.yaml`:\n").unwrap(),
            Some(setting) => {
                writeln!(page, "\nWith `{setting}`, by `charts/wavelift/rbac/{role}.yaml`:\n")
                    .unwrap();
            }
        }
        page.push_str("| resource | verbs | where | why |\n|---|---|---|---|\n");
        for right in RIGHTS.iter().filter(|right| right.grant == grant) {
            let resource = format!("{}/{}", right.group, right.resource);
            let place = match right.place {
                Place::Everywhere => "everywhere",
                Place::OwnNamespace => "its own namespace",
            };
            let verbs = right.verbs.join(", ");
            writeln!(page, "| `{resource}` | {verbs} | {place} | {} |", right.why).unwrap();
        }
    }
    writeln!(
        page,
        "\nBeside these the agent is bound to the cluster's own role `view`, into which OLM puts what \
         operators define and in which Secrets are not, and to every ClusterRole with the label \
         `{AGGREGATE}: \"true\"`. What it may not read it calls Unknown."
    )
    .unwrap();
    page
}

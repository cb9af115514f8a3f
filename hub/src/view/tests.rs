use std::sync::Arc;

use wavelift_api::live::{AgentStateName, AgentView};

use super::*;

fn agent(cluster: &str, state: AgentStateName) -> (String, Arc<AgentView>) {
    let agent = AgentView {
        cluster: cluster.to_owned(),
        state,
        since_time: None,
        last_heard_time: None,
        version: None,
        kube_version: None,
    };
    (cluster.to_owned(), Arc::new(agent))
}

fn fleet(b: AgentStateName) -> Fleet {
    let agents = [agent("a", AgentStateName::Connected), agent("b", b)];
    Fleet { agents: agents.into(), ..Fleet::default() }
}

#[test]
fn what_is_equal_wakes_nobody_and_keeps_its_pointer() {
    let board = Board::new();
    let mut reader = board.subscribe();
    board.publish(fleet(AgentStateName::Connected));
    let first = Arc::clone(&reader.borrow_and_update());
    assert_eq!(first.sequence, 1);

    board.publish(fleet(AgentStateName::Connected));
    assert!(!reader.has_changed().unwrap());

    board.publish(fleet(AgentStateName::Silent));
    assert!(reader.has_changed().unwrap());
    let second = board.current();
    assert_eq!(second.sequence, 2);
    assert!(Arc::ptr_eq(&first.agents["a"], &second.agents["a"]), "unchanged");
    assert!(!Arc::ptr_eq(&first.agents["b"], &second.agents["b"]), "changed");
    assert_eq!(
        (second.agents_in(AgentStateName::Connected), second.agents_in(AgentStateName::Silent)),
        (1, 1)
    );
}

#[test]
fn two_boards_are_told_apart() {
    assert_ne!(Board::new().boot(), Board::new().boot());
}

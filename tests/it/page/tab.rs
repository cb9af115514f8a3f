//! One page in the browser: what a person sees there, and the keys they press.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};

use super::{wire::Wire, witness::Witness};
use crate::stage::{PATIENCE, soon};

/// Every protocol domain whose events are evidence.
const DOMAINS: [&str; 6] = ["Inspector", "Page", "Runtime", "Network", "Log", "Audits"];
/// How long a page that kept us waiting may take to say what it shows.
const LAST_WORDS: Duration = Duration::from_secs(20);
/// What expressions may use: the text of one element, of all of them, and of what has the focus.
const WORDS: &str = r#"
    const text = (selector) => document.querySelector(selector)?.textContent.trim() ?? "";
    const texts = (selector) => [...document.querySelectorAll(selector)].map((e) => e.textContent.trim());
    const has = (selector) => document.querySelector(selector) !== null;
    const focused = (selector) => document.activeElement?.matches(selector) ?? false;
"#;

/// A key on the keyboard.
#[derive(Debug, Clone, Copy)]
pub(super) enum Key {
    /// One that writes.
    Char(char),
    Tab,
    Enter,
    Escape,
    Down,
    Up,
}

/// A browser with one page.
pub(super) struct Tab {
    wire: Wire,
    session: String,
    origin: String,
}

impl Tab {
    /// Opens the address in a browser of its own.
    pub(super) async fn open(chromium: &Path, address: &str) -> Self {
        let mut wire = Wire::start(chromium);
        let session = soon("the browser", async {
            let target = json!({"url": "about:blank"});
            let target = wire.call(None, "Target.createTarget", target).await;
            let target = json!({"targetId": target["targetId"], "flatten": true});
            let attached = wire.call(None, "Target.attachToTarget", target).await;
            attached["sessionId"].as_str().unwrap().to_owned()
        });
        let session = session.await;
        let origin = address.trim_end_matches('/').to_owned();
        let mut tab = Self { wire, session, origin };
        for domain in DOMAINS {
            tab.call(&format!("{domain}.enable"), json!({})).await;
        }
        tab.call("Emulation.setFocusEmulationEnabled", json!({"enabled": true})).await;
        tab.load(address).await;
        tab
    }

    /// Loads an address, as if typed into the address bar.
    pub(super) async fn load(&mut self, address: &str) {
        let known = self.wire.events().len();
        let went = self.call("Page.navigate", json!({"url": address})).await;
        assert!(went["errorText"].is_null(), "{address}: {went}");
        soon(address, self.wire.event(known, "Page.loadEventFired")).await;
    }

    /// Presses keys, one after the other.
    pub(super) async fn press(&mut self, keys: &[Key]) {
        for key in keys {
            for event in [key.down(), key.up()] {
                self.call("Input.dispatchKeyEvent", event).await;
            }
        }
    }

    /// Types letters, digits and dashes.
    pub(super) async fn write(&mut self, words: &str) {
        let keys: Vec<Key> = words.chars().map(Key::Char).collect();
        self.press(&keys).await;
    }

    /// What `expression` is on the page now.
    pub(super) async fn look(&mut self, expression: &str) -> Value {
        soon(expression, self.evaluate(&format!("{{ {WORDS} ({expression}) }}"))).await
    }

    /// Waits until `condition` is true on the page.
    pub(super) async fn until(&mut self, condition: &str) {
        let waiting = format!(
            "new Promise((done) => {{
                {WORDS}
                const look = () => {{
                    if (!({condition})) return;
                    observer.disconnect();
                    removeEventListener('focusin', look);
                    done(true);
                }};
                const observer = new MutationObserver(look);
                observer.observe(document, {{
                    subtree: true, childList: true, attributes: true, characterData: true,
                }});
                addEventListener('focusin', look);
                look();
            }})"
        );
        if tokio::time::timeout(PATIENCE, self.evaluate(&waiting)).await.is_err() {
            let shown = self.evaluate("location.href + '\\n' + document.body.innerText");
            let shown = tokio::time::timeout(LAST_WORDS, shown).await;
            let shown = shown.map_or_else(|late| late.to_string(), |shown| shown.to_string());
            panic!("waited in vain for {condition}; the page shows {shown}");
        }
    }

    /// From now on keeps what `expressions` become one after the other; [`Self::kept`] has it.
    pub(super) async fn keep(&mut self, expressions: &[&str]) {
        let keeping = format!(
            "{{
                {WORDS}
                const looks = [() => ({})];
                const kept = globalThis.kept = looks.map(() => []);
                const look = () => looks.forEach((look, i) => {{
                    const now = look();
                    if (kept[i].at(-1) !== now) kept[i].push(now);
                }});
                new MutationObserver(look).observe(document, {{
                    subtree: true, childList: true, attributes: true, characterData: true,
                }});
                look();
            }}",
            expressions.join("), () => (")
        );
        soon("the page", self.evaluate(&keeping)).await;
    }

    /// What [`Self::keep`] kept, for each of its expressions. A page that was loaded again since
    /// has nothing.
    pub(super) async fn kept(&mut self) -> Vec<Vec<String>> {
        serde_json::from_value(self.look("globalThis.kept").await).unwrap()
    }

    /// What the browser noticed so far.
    pub(super) async fn witness(&mut self) -> Witness {
        // Two frames, so that what the page did last has been noticed too.
        let frames =
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))";
        soon("two frames", self.evaluate(&format!("{frames}.then(() => true)"))).await;
        Witness::of(self.wire.events(), &self.origin)
    }

    /// Ends the browser.
    pub(super) async fn close(self) {
        soon("the browser's end", self.wire.close()).await;
    }

    async fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({
            "expression": expression, "awaitPromise": true, "returnByValue": true,
        });
        let mut answer = self.wire.call(Some(&self.session), "Runtime.evaluate", params).await;
        let thrown = &answer["exceptionDetails"];
        assert!(thrown.is_null(), "{expression}: {thrown}");
        answer["result"]["value"].take()
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        soon(method, self.wire.call(Some(&self.session), method, params)).await
    }
}

impl Key {
    fn down(self) -> Value {
        let mut event = self.event();
        // Without a text of its own a key is pressed, but writes nothing.
        let writes = !event["text"].is_null();
        event["type"] = json!(if writes { "keyDown" } else { "rawKeyDown" });
        event
    }

    fn up(self) -> Value {
        let mut event = self.event();
        event["type"] = json!("keyUp");
        event["text"] = Value::Null;
        strip(event)
    }

    fn event(self) -> Value {
        let (key, code, number, text) = match self {
            Self::Char(char) => {
                let text = char.to_string();
                let number = if char.is_ascii_alphanumeric() {
                    u32::from(char.to_ascii_uppercase())
                } else {
                    0
                };
                return json!({"key": text, "windowsVirtualKeyCode": number, "text": text});
            }
            Self::Tab => ("Tab", "Tab", 9, None),
            Self::Enter => ("Enter", "Enter", 13, Some("\r")),
            Self::Escape => ("Escape", "Escape", 27, None),
            Self::Up => ("ArrowUp", "ArrowUp", 38, None),
            Self::Down => ("ArrowDown", "ArrowDown", 40, None),
        };
        strip(json!({"key": key, "code": code, "windowsVirtualKeyCode": number, "text": text}))
    }
}

/// Without what is null: the browser takes only texts.
fn strip(mut event: Value) -> Value {
    if let Some(event) = event.as_object_mut() {
        event.retain(|_, value| !value.is_null());
    }
    event
}

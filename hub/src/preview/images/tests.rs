use wavelift_sources::bundle_image::Options;

use super::*;

fn digest(digit: char) -> String {
    digit.to_string().repeat(64)
}

/// An image by digest at this registry.
fn image(registry: &str, digit: char) -> String {
    format!("{registry}/team/tea@sha256:{}", digest(digit))
}

fn images(room: ImageRoom) -> Images {
    let fetcher = BundleImages::new(Options::default()).unwrap();
    let mut images = Images::new(room, Some(fetcher));
    images.recount(Instant::now());
    images
}

fn fetched(named: Named, bytes: usize) -> Fetched {
    Fetched { digest: "sha256:d".to_owned(), manifests: Arc::default(), named, bytes }
}

fn failure(lasts: Lasts, silence: Option<&str>) -> Failure {
    Failure { why: "the test says so".to_owned(), lasts, silence: silence.map(str::to_owned) }
}

fn next(images: &mut Images, now: Instant) -> Option<String> {
    images.next(now).map(|fetch| fetch.image)
}

fn is_awaited(found: &Image) -> bool {
    matches!(found, Image::Awaited)
}

fn missing(found: Image) -> String {
    let Image::Missing(why) = found else { panic!("not missing: {found:?}") };
    why
}

#[test]
fn an_image_is_fetched_once_however_many_ask() {
    let mut images = images(ImageRoom::default());
    let (a, now) = (image("a.example", '1'), Instant::now());
    assert!(is_awaited(&images.find(&a, 3, now)));
    assert_eq!(next(&mut images, now), Some(a.clone()));
    assert!(is_awaited(&images.find(&a, 9, now)));
    assert_eq!(next(&mut images, now), None);
    assert_eq!(images.fetched(&a, Ok(fetched(Named::Digest, 1)), now), "fetched");
    assert!(images.take_news() && !images.take_news());
    // What is named by digest is what it is, for good.
    let later = now + Duration::from_hours(24 * 365);
    assert!(matches!(images.find(&a, 1, later), Image::Here(_)));
    assert_eq!(next(&mut images, later), None);
    assert_eq!(images.fetched(&a, Ok(fetched(Named::Digest, 1)), now), "unasked");
}

#[test]
fn a_tag_is_looked_at_again_and_stays_what_it_was_until_then() {
    let mut images = images(ImageRoom::default());
    let (a, now) = ("a.example/team/tea:v1", Instant::now());
    images.find(a, 1, now);
    assert_eq!(next(&mut images, now).as_deref(), Some(a));
    images.fetched(a, Ok(fetched(Named::Tag, 1)), now);
    let early = now + TAG_PERIOD - Duration::from_secs(1);
    assert!(matches!(images.find(a, 1, early), Image::Here(_)));
    assert_eq!(next(&mut images, early), None);
    let due = now + TAG_PERIOD;
    assert!(matches!(images.find(a, 1, due), Image::Here(_)));
    assert_eq!(next(&mut images, due).as_deref(), Some(a));
    // Its registry is away for a moment.
    images.fetched(a, Err(failure(Lasts::AWhile, None)), due);
    assert!(matches!(images.find(a, 1, due), Image::Here(_)));
    images.find(a, 1, due + TRANSIENT_PAUSE);
    assert_eq!(next(&mut images, due + TRANSIENT_PAUSE).as_deref(), Some(a));
}

#[test]
fn what_failed_is_missing_and_tried_again_when_its_time_has_come() {
    for (lasts, word, minutes) in [(Lasts::AWhile, "failed", 10), (Lasts::Long, "refused", 60)] {
        let mut images = images(ImageRoom::default());
        let (a, now) = (image("a.example", '1'), Instant::now());
        images.find(&a, 1, now);
        next(&mut images, now);
        assert_eq!(images.fetched(&a, Err(failure(lasts, None)), now), word);
        let due = now + Duration::from_mins(minutes);
        let early = due - Duration::from_secs(1);
        assert_eq!(missing(images.find(&a, 1, early)), "the test says so");
        assert_eq!(next(&mut images, early), None);
        assert_eq!(missing(images.find(&a, 1, due)), "the test says so", "shown meanwhile");
        assert_eq!(next(&mut images, due), Some(a.clone()));
        images.fetched(&a, Ok(fetched(Named::Digest, 1)), due);
        assert!(matches!(images.find(&a, 1, due), Image::Here(_)));
    }
}

#[test]
fn what_most_need_comes_first_and_one_registry_never_takes_all_the_room() {
    let mut images = images(ImageRoom { at_once: 3, at_one_place: 2, ..ImageRoom::default() });
    let now = Instant::now();
    let slow = ['1', '2', '3', '4'].map(|digit| image("slow.example", digit));
    let other = image("other.example", '5');
    for one in &slow[..3] {
        images.find(one, 1, now);
    }
    images.find(&slow[3], 7, now);
    images.find(&other, 1, now);
    assert_eq!(next(&mut images, now).as_ref(), Some(&slow[3]));
    assert_eq!(next(&mut images, now).as_ref(), Some(&slow[0]));
    assert_eq!(next(&mut images, now).as_ref(), Some(&other));
    assert_eq!(next(&mut images, now), None, "all are at work");
    images.fetched(&other, Ok(fetched(Named::Digest, 1)), now);
    assert_eq!(next(&mut images, now), None, "the rest is of the slow one");
    images.fetched(&slow[0], Ok(fetched(Named::Digest, 1)), now);
    assert_eq!(next(&mut images, now).as_ref(), Some(&slow[1]));
}

#[test]
fn registries_that_do_not_answer_are_left_alone_for_a_while() {
    let mut images = images(ImageRoom { at_once: 1, ..ImageRoom::default() });
    let now = Instant::now();
    let (a, b, c) = (image("gone", '1'), image("gone", '2'), image("here.example", '3'));
    // A name without a dot is below Docker Hub; the test wants a registry.
    let (a, b) = (a.replace("gone/", "gone:5000/"), b.replace("gone/", "gone:5000/"));
    for one in [&a, &b, &c] {
        images.find(one, 1, now);
    }
    assert_eq!(next(&mut images, now).as_ref(), Some(&a));
    let silent = failure(Lasts::AWhile, Some("gone:5000: no answer; check the address"));
    images.fetched(&a, Err(silent), now);
    images.take_news();
    assert_eq!(next(&mut images, now).as_ref(), Some(&c), "b is not tried");
    assert!(images.take_news());
    let why = missing(images.find(&b, 1, now));
    assert_eq!(why, format!("failed to pull image {b}: gone:5000: no answer; check the address"));
    images.fetched(&c, Ok(fetched(Named::Digest, 1)), now);
    let due = now + TRANSIENT_PAUSE;
    images.find(&b, 1, due);
    assert_eq!(next(&mut images, due).as_ref(), Some(&b));
}

#[test]
fn what_fewer_need_makes_room_and_what_others_use_does_not() {
    let mut images = images(ImageRoom { bytes: 10, ..ImageRoom::default() });
    let now = Instant::now();
    let [a, b, c] = ['1', '2', '3'].map(|digit| image("a.example", digit));
    let fetch = |images: &mut Images, image: &str, users: usize, at: Instant| {
        images.find(image, users, at);
        assert_eq!(next(images, at).as_deref(), Some(image));
        images.fetched(image, Ok(fetched(Named::Digest, 6)), at)
    };
    assert_eq!(fetch(&mut images, &a, 2, now), "fetched");
    assert_eq!(fetch(&mut images, &b, 2, now), "no_room");
    assert_eq!(missing(images.find(&b, 2, now)), "the hub has no room for its manifests");
    assert_eq!(fetch(&mut images, &c, 3, now), "fetched", "more need it than a");
    assert!(is_awaited(&images.find(&a, 2, now)));
    // Nobody asks for c any more: not in the pass that has begun, nor in the one before.
    let due = now + TRANSIENT_PAUSE;
    images.recount(due);
    images.find(&b, 1, due);
    images.recount(due);
    assert_eq!(fetch(&mut images, &b, 1, due), "fetched");
    // Nothing of what failed, or was never begun, is remembered longer than it is needed.
    images.recount(due);
    images.recount(due);
    assert_eq!(images.entries.keys().collect::<Vec<_>>(), [&b]);
}

#[test]
fn only_so_much_is_known_and_without_a_fetcher_nothing_is() {
    let mut images = images(ImageRoom { known: 1, ..ImageRoom::default() });
    let now = Instant::now();
    images.find(&image("a.example", '1'), 1, now);
    let why = missing(images.find(&image("a.example", '2'), 1, now));
    assert_eq!(why, "the hub has no room for its image");
    assert!(is_awaited(&images.find(&image("a.example", '2'), 2, now)), "more need it");
    let mut images = Images::new(ImageRoom::default(), None);
    let why = missing(images.find(&image("a.example", '1'), 1, now));
    assert_eq!(why, "this hub does not fetch bundle images (--bundle-images)");
    assert!(images.next(now).is_none());
}

#[tokio::test]
async fn a_fetch_ends_with_the_hub_and_what_broke_is_fetched_again() {
    let mut images = images(ImageRoom::default());
    let (a, now) = (image("a.invalid", '1'), Instant::now());
    images.find(&a, 1, now);
    let fetch = images.next(now).unwrap();
    images.broke();
    assert_eq!(next(&mut images, now), Some(a));
    images.end();
    let failure = fetch.run().await.unwrap_err();
    assert!(failure.why.contains("was given up"), "{failure}");
}

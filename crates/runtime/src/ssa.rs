//! Writing objects: server-side apply under one field manager, and status by resource version.
//!
//! A conflict is told apart by its kind: fields that another manager owns ([`Error::Owned`]), or an
//! object that changed since it was read ([`Error::Stale`]). The first needs a person, the second
//! another look.

use std::fmt::{self, Debug};

use kube::{
    Resource, ResourceExt as _,
    api::{Api, Patch, PatchParams, PostParams},
    core::response::Status,
};
use serde::{Serialize, de::DeserializeOwned};

/// The name under which Wavelift's part of an object is kept apart from others'.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldManager(pub &'static str);

/// Whether an apply takes over fields that another manager owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// Leave them: the apply fails with [`Error::Owned`].
    Respect,
    /// Take them: for objects that are ours alone.
    TakeOver,
}

/// One field that somebody else owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Where in the object.
    pub field: String,
    /// The API server's words about who it is.
    pub message: String,
}

/// Why an object was not written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Other managers own some of the fields.
    #[error("fields of `{name}` belong to others: {}", Owners(owners))]
    Owned {
        /// The object.
        name: String,
        /// The fields and their owners.
        owners: Vec<Owner>,
    },
    /// The object changed since it was read.
    #[error("`{0}` changed since it was read")]
    Stale(String),
    /// There is no such object.
    #[error("`{0}` is not there")]
    NotFound(String),
    /// An object of this name is there already.
    #[error("`{0}` is there already")]
    Exists(String),
    /// The API server refused the content.
    #[error("`{name}` is not valid: {message}")]
    Invalid {
        /// The object.
        name: String,
        /// The API server's words.
        message: String,
    },
    /// We may not.
    #[error("not allowed to write `{name}`: {message}")]
    Forbidden {
        /// The object.
        name: String,
        /// The API server's words.
        message: String,
    },
    /// Anything else.
    #[error("failed to write `{name}`")]
    Api {
        /// The object.
        name: String,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
}

struct Owners<'a>(&'a [Owner]);

// === impl Error ===

impl Error {
    /// Sorts an API server's answer about the object `name`.
    pub fn new(name: &str, error: kube::Error) -> Self {
        let name = name.to_owned();
        if let kube::Error::Api(status) = error {
            Self::from_status(name, status)
        } else {
            Self::Api { name, source: Box::new(error) }
        }
    }

    fn from_status(name: String, status: Box<Status>) -> Self {
        if status.is_already_exists() {
            return Self::Exists(name);
        }
        match status.code {
            404 => Self::NotFound(name),
            409 => {
                let owners = owners(&status);
                if owners.is_empty() { Self::Stale(name) } else { Self::Owned { name, owners } }
            }
            400 | 422 => Self::Invalid { name, message: status.message },
            401 | 403 => Self::Forbidden { name, message: status.message },
            _ => Self::Api { name, source: Box::new(kube::Error::Api(status)) },
        }
    }

    /// The kind, for metrics and events.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Owned { .. } => "owned",
            Self::Stale(_) => "stale",
            Self::NotFound(_) => "not_found",
            Self::Exists(_) => "exists",
            Self::Invalid { .. } => "invalid",
            Self::Forbidden { .. } => "forbidden",
            Self::Api { .. } => "api",
        }
    }
}

fn owners(status: &Status) -> Vec<Owner> {
    let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
    causes
        .iter()
        .filter(|cause| cause.reason == "FieldManagerConflict")
        .map(|cause| Owner { field: cause.field.clone(), message: cause.message.clone() })
        .collect()
}

impl fmt::Display for Owners<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, owner) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{} ({})", owner.field, owner.message)?;
        }
        Ok(())
    }
}

// === impl FieldManager ===

impl FieldManager {
    /// Applies `object`, which must carry its apiVersion, kind and name, and nothing that is not
    /// ours.
    pub async fn apply<K>(
        self,
        api: &Api<K>,
        name: &str,
        object: &(impl Serialize + Debug),
        ownership: Ownership,
    ) -> Result<K, Error>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        api.patch(name, &self.params(ownership), &Patch::Apply(object))
            .await
            .map_err(|error| Error::new(name, error))
    }

    /// Applies the status of `object`.
    pub async fn apply_status<K>(
        self,
        api: &Api<K>,
        name: &str,
        object: &(impl Serialize + Debug),
        ownership: Ownership,
    ) -> Result<K, Error>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        api.patch_status(name, &self.params(ownership), &Patch::Apply(object))
            .await
            .map_err(|error| Error::new(name, error))
    }

    /// Merges `patch` into the object. With `metadata.resourceVersion` in it, the object must not
    /// have changed.
    pub async fn merge<K>(
        self,
        api: &Api<K>,
        name: &str,
        patch: &(impl Serialize + Debug),
    ) -> Result<K, Error>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        api.patch(name, &self.merging(), &Patch::Merge(patch))
            .await
            .map_err(|error| Error::new(name, error))
    }

    /// Merges `patch` into the status of the object. With `metadata.resourceVersion` in it, the
    /// object must not have changed.
    pub async fn merge_status<K>(
        self,
        api: &Api<K>,
        name: &str,
        patch: &(impl Serialize + Debug),
    ) -> Result<K, Error>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        api.patch_status(name, &self.merging(), &Patch::Merge(patch))
            .await
            .map_err(|error| Error::new(name, error))
    }

    /// Creates the object.
    pub async fn create<K>(self, api: &Api<K>, object: &K) -> Result<K, Error>
    where
        K: Resource + Clone + DeserializeOwned + Debug + Serialize,
    {
        let name = object.name_any();
        api.create(&self.post(), object).await.map_err(|error| Error::new(&name, error))
    }

    /// Replaces the object as it was read, with changes: stale if it changed meanwhile.
    pub async fn replace<K>(self, api: &Api<K>, object: &K) -> Result<K, Error>
    where
        K: Resource + Clone + DeserializeOwned + Debug + Serialize,
    {
        let name = object.name_any();
        versioned(object)?;
        api.replace(&name, &self.post(), object).await.map_err(|error| Error::new(&name, error))
    }

    /// Replaces the status of the object as it was read: stale if it changed meanwhile.
    pub async fn replace_status<K>(self, api: &Api<K>, object: &K) -> Result<K, Error>
    where
        K: Resource + Clone + DeserializeOwned + Debug + Serialize,
    {
        let name = object.name_any();
        versioned(object)?;
        api.replace_status(&name, &self.post(), object)
            .await
            .map_err(|error| Error::new(&name, error))
    }

    fn params(self, ownership: Ownership) -> PatchParams {
        let params = PatchParams::apply(self.0);
        match ownership {
            Ownership::Respect => params,
            Ownership::TakeOver => params.force(),
        }
    }

    fn merging(self) -> PatchParams {
        PatchParams { field_manager: Some(self.0.to_owned()), ..PatchParams::default() }
    }

    fn post(self) -> PostParams {
        PostParams { field_manager: Some(self.0.to_owned()), ..PostParams::default() }
    }
}

/// Without a resource version a replacement would overwrite whatever is there.
fn versioned<K: Resource>(object: &K) -> Result<(), Error> {
    if object.resource_version().is_some() {
        return Ok(());
    }
    let message = "a replacement must carry the resource version it was read with".to_owned();
    Err(Error::Invalid { name: object.name_any(), message })
}

#[cfg(test)]
mod tests {
    use axum::{
        Json, Router,
        extract::Request,
        http::{HeaderMap, StatusCode},
        response::IntoResponse as _,
    };
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::{Value, json};
    use tower::ServiceExt as _;

    use super::*;

    const OURS: FieldManager = FieldManager("wavelift-test");

    /// An API server that gives every request this answer; a good one tells the request.
    fn mk_api(code: u16, answer: Value) -> Api<ConfigMap> {
        let router = Router::new().fallback(move |headers: HeaderMap, request: Request| {
            let mut answer = answer.clone();
            async move {
                let kind = headers.get("content-type").map_or("", |kind| kind.to_str().unwrap());
                if code == 200 {
                    let told = format!("{} {} {kind}", request.method(), request.uri());
                    answer["data"]["request"] = json!(told);
                }
                (StatusCode::from_u16(code).unwrap(), Json(answer)).into_response()
            }
        });
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            router.clone().oneshot(request.map(axum::body::Body::new))
        });
        Api::namespaced(kube::Client::new(service, "ns"), "ns")
    }

    fn refused(code: u16, reason: &str, causes: &Value) -> Api<ConfigMap> {
        mk_api(
            code,
            json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                "reason": reason, "message": "no", "details": { "causes": causes },
            }),
        )
    }

    fn told(object: &ConfigMap) -> &str {
        &object.data.as_ref().unwrap()["request"]
    }

    #[tokio::test]
    async fn an_apply_goes_out_under_its_field_manager() {
        let api = mk_api(200, json!({ "metadata": { "name": "a" }, "data": {} }));
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap" });
        let applied = OURS.apply(&api, "a", &object, Ownership::Respect).await.unwrap();
        let path = "/api/v1/namespaces/ns/configmaps/a";
        assert_eq!(
            told(&applied),
            format!("PATCH {path}?&fieldManager=wavelift-test application/apply-patch+yaml")
        );
        let applied = OURS.apply_status(&api, "a", &object, Ownership::TakeOver).await.unwrap();
        assert_eq!(
            told(&applied),
            format!(
                "PATCH {path}/status?&force=true&fieldManager=wavelift-test \
                 application/apply-patch+yaml"
            )
        );
    }

    #[tokio::test]
    async fn the_two_conflicts_are_told_apart() {
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap" });
        let causes = json!([{
            "reason": "FieldManagerConflict", "field": ".spec.replicas",
            "message": "conflict with \"argocd\"",
        }]);
        let error = OURS
            .apply(&refused(409, "Conflict", &causes), "a", &object, Ownership::Respect)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), "owned");
        assert_eq!(
            error.to_string(),
            "fields of `a` belong to others: .spec.replicas (conflict with \"argocd\")"
        );
        let error =
            OURS.merge(&refused(409, "Conflict", &json!([])), "a", &object).await.unwrap_err();
        assert_eq!(error.kind(), "stale");
    }

    #[tokio::test]
    async fn other_refusals_have_their_kind() {
        for (code, reason, kind) in [
            (404, "NotFound", "not_found"),
            (409, "AlreadyExists", "exists"),
            (422, "Invalid", "invalid"),
            (403, "Forbidden", "forbidden"),
            (500, "InternalError", "api"),
        ] {
            let error = OURS
                .create(&refused(code, reason, &json!([])), &ConfigMap::default())
                .await
                .unwrap_err();
            assert_eq!(error.kind(), kind, "{code} {reason}");
        }
    }

    #[tokio::test]
    async fn a_replacement_without_a_version_is_not_even_sent() {
        let api = mk_api(200, json!({ "metadata": { "name": "a" }, "data": {} }));
        let error = OURS.replace(&api, &ConfigMap::default()).await.unwrap_err();
        assert_eq!(error.kind(), "invalid");
        let error = OURS.replace_status(&api, &ConfigMap::default()).await.unwrap_err();
        assert_eq!(error.kind(), "invalid");
    }
}

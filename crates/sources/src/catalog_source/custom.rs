//! Documents of schemas that are not OLM's own. Newer registries serve them, by package.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::Value;
use tonic::{Code, Request, metadata::MetadataValue};
use wavelift_proto::olm_registry::{
    self as wire, experimental_registry_client::ExperimentalRegistryClient,
};

use super::{CALLS_AT_ONCE, CatalogSource, Error, MESSAGE_BYTES_MAX, assemble};

/// The documents of a custom schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CustomSchema {
    /// All of them that the registry has for the package.
    Documents(Vec<Value>),
    /// The registry is too old to serve any. They may exist all the same.
    NotServed,
}

/// Documents, and how long they were on the way.
#[derive(Debug, Default)]
struct Listed {
    documents: Vec<Value>,
    bytes: usize,
}

// === impl CatalogSource ===

impl CatalogSource {
    /// The documents of a custom schema that belong to a package; without one, those that belong to
    /// none.
    pub async fn custom_schema(
        &self,
        schema: &str,
        package: Option<&str>,
    ) -> Result<CustomSchema, Error> {
        let listed = self.listed(schema, package).await?;
        Ok(listed.map_or(CustomSchema::NotServed, |one| CustomSchema::Documents(one.documents)))
    }

    /// The documents of several custom schemas that belong to any of these packages. The limits hold
    /// for all of them together.
    pub async fn custom_schemas(
        &self,
        schemas: &[&str],
        packages: &[String],
    ) -> Result<CustomSchema, Error> {
        let questions: Vec<(String, String)> = schemas
            .iter()
            .flat_map(|&schema| packages.iter().map(move |one| (schema.to_owned(), one.clone())))
            .collect();
        let mut answers = stream::iter(questions)
            .map(|(schema, package)| async move { self.listed(&schema, Some(&package)).await })
            .buffered(CALLS_AT_ONCE);
        let mut all = Listed::default();
        while let Some(answer) = answers.try_next().await? {
            let Some(Listed { documents, bytes }) = answer else {
                return Ok(CustomSchema::NotServed);
            };
            all.bytes += bytes;
            all.documents.extend(documents);
            self.within("bytes", all.bytes, self.limits.total_bytes)?;
            self.within("documents", all.documents.len(), self.limits.file_documents)?;
        }
        Ok(CustomSchema::Documents(all.documents))
    }

    /// Nothing from a registry that does not know the call.
    async fn listed(&self, schema: &str, package: Option<&str>) -> Result<Option<Listed>, Error> {
        let call = format!("documents of {schema}");
        let read = || async {
            match self.listed_once(&call, schema, package).await {
                Err(Error::Call { source, .. }) if source.code() == Code::Unimplemented => Ok(None),
                read => read.map(Some),
            }
        };
        self.again(&call, read).await
    }

    async fn listed_once(
        &self,
        call: &str,
        schema: &str,
        package: Option<&str>,
    ) -> Result<Listed, Error> {
        let mut client = ExperimentalRegistryClient::new(self.channel.clone())
            .max_decoding_message_size(MESSAGE_BYTES_MAX);
        let mut request = Request::new(wire::ExperimentalListPackageCustomSchemasRequest {
            schema: schema.to_owned(),
            package_name: package.unwrap_or_default().to_owned(),
        });
        // Without this a server that knows the call answers nothing at all.
        request
            .metadata_mut()
            .insert("x-acknowledge-experimental", MetadataValue::from_static("true"));
        let asked = client.experimental_list_package_custom_schemas(request);
        let mut stream = self.answer(call, asked).await?;
        let mut listed = Listed::default();
        while let Some(document) = self.next(call, &mut stream).await? {
            listed.bytes += prost::Message::encoded_len(&document);
            self.within("bytes", listed.bytes, self.limits.total_bytes)?;
            self.within("documents", listed.documents.len() + 1, self.limits.file_documents)?;
            listed.documents.push(assemble::json_of(document));
        }
        Ok(listed)
    }
}

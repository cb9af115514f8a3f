//! Compiles the wire contracts with protox, so that no protoc is needed to build.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = protox::compile(["wavelift/v1/agent_link.proto", "olm/registry.proto"], ["."])?;
    tonic_prost_build::configure().bytes(".wavelift.v1").compile_fds(files)?;
    println!("cargo:rerun-if-changed=wavelift");
    println!("cargo:rerun-if-changed=olm");
    Ok(())
}

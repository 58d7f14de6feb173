/** The members of a CycloneDX list of components that are read here. */
export interface Parts {
  readonly metadata: { readonly component: { readonly name: string } };
  readonly components: readonly { readonly name: string; readonly version: string; readonly 'bom-ref': string }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

/** The components of the package `name`, filtered from the full list. `packages` are its parts, as `name@version`. */
export function partsOf(all: Parts, name: string, packages: readonly string[]): Parts {
  const components = all.components.filter((one) => packages.includes(`${one.name}@${one.version}`));
  const refs = new Set(components.map((one) => one['bom-ref']));
  return {
    ...all,
    metadata: { ...all.metadata, component: { ...all.metadata.component, name } },
    components,
    dependencies: all.dependencies
      .filter(({ ref }) => refs.has(ref))
      .map((one) => ({ ...one, dependsOn: one.dependsOn.filter((ref) => refs.has(ref)) })),
  };
}

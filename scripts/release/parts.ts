import { createHash } from 'node:crypto';

/** The members of a CycloneDX list of components that are read here. */
export interface Parts {
  readonly serialNumber?: string;
  readonly metadata: { readonly timestamp?: string; readonly component: { readonly name: string } };
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

/** A part that is no package of npm's lock file. */
export interface OtherPart {
  readonly name: string;
  readonly version: string;
  readonly purl: string;
}

/** The list with further parts, such as Node and what an image has of a system. */
export const withOthers = (parts: Parts, others: readonly OtherPart[]): Parts => ({
  ...parts,
  components: [...parts.components, ...others.map((one) => ({ type: 'application', 'bom-ref': one.purl, ...one }))],
});

/** The list with the same bytes in every build: npm writes the time and a random number into it. */
export function withoutChance({ serialNumber: _number, ...parts }: Parts): Parts {
  const { timestamp: _time, ...metadata } = parts.metadata;
  const digest = createHash('sha256')
    .update(JSON.stringify({ ...parts, metadata }))
    .digest('hex');
  // A UUID of version 8, whose bits are free.
  const uuid = `${digest.slice(0, 8)}-${digest.slice(8, 12)}-8${digest.slice(13, 16)}-8${digest.slice(17, 20)}-${digest.slice(20, 32)}`;
  return { ...parts, serialNumber: `urn:uuid:${uuid}`, metadata };
}

import type { SystemPackage } from './debian.ts';
import type { PlatformNode } from './nodes.ts';

interface Built {
  readonly version: string;
  readonly commit: string | null;
  /** Names of the files with their SHA-256, in hex. */
  readonly files: readonly (readonly [string, string])[];
  /** SHA-256 of `package-lock.json`, in hex. */
  readonly lock: string;
  readonly nodes: readonly PlatformNode[];
  readonly system: readonly SystemPackage[];
}

/**
 * A statement of in-toto with the provenance of SLSA 1.0: what the files are, and what they were built from. It has no
 * time, so it is the same in each build. The signature of the checksums covers it.
 */
export function provenanceOf({ version, commit, files, lock, nodes, system }: Built): object {
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: files.map(([name, sha256]) => ({ name, digest: { sha256 } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'urn:tollgate:npm-run-release:v1',
        externalParameters: {
          version,
          ...(commit === null ? {} : { commit }),
          platforms: nodes.map((one) => one.platform),
        },
        resolvedDependencies: [
          ...(commit === null ? [] : [{ name: 'source', digest: { gitCommit: commit.replace(/-changed$/, '') } }]),
          { name: 'package-lock.json', digest: { sha256: lock } },
          ...nodes.map(({ name, version: of, integrity }) => ({
            uri: `pkg:npm/${name}@${of}`,
            digest: { sha512: Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex') },
          })),
          ...system.map((one) => ({ uri: systemUrl(one), digest: { sha256: one.sha256 } })),
        ],
      },
      runDetails: { builder: { id: 'urn:tollgate:npm-run-release' } },
    },
  };
}

/** The package URL of a package of Debian. */
export const systemUrl = ({ name, version, architecture }: SystemPackage): string =>
  `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`;

import { FILM_VENDORS } from './film-vendors.ts';
import { SOUND_VENDORS } from './sound-vendors.ts';
import { VENDORS, type Vendor } from './vendors.ts';

/* Which kinds of models of which packages the tests of this folder call, and what each is charged by. */

/** The kinds of models, as a provider of the AI SDK names them. */
export const MODEL_KINDS = ['language', 'embedding', 'image', 'speech', 'transcription', 'reranking', 'video'] as const;
export type ModelKind = (typeof MODEL_KINDS)[number];

export interface TriedPackage {
  readonly name: string;
  /** The entry that is called: `@ai-sdk/google-vertex/edge`. */
  readonly entry: string;
  readonly settings: (url: string) => Readonly<Record<string, unknown>>;
  readonly secrets: readonly string[];
  /** What a model of this kind is charged by; absent for a kind that is not called. */
  readonly kinds: Readonly<Partial<Record<ModelKind, string>>>;
}

type Kinds = Partial<Record<ModelKind, string>>;

function ofVendor({ models, says, countsNoInputs }: Vendor): Kinds {
  return {
    ...(models.chat === null ? {} : { language: ['tokens', ...says].join(', ') }),
    ...(models.embed === null ? {} : { embedding: countsNoInputs ? 'bytes' : 'tokens' }),
    ...(models.paint === null ? {} : { image: 'images' }),
    ...(models.rerank === undefined ? {} : { reranking: models.rerank.by }),
  };
}

/** All packages that are called, by name. */
export function triedPackages(): readonly TriedPackage[] {
  const found = new Map<string, TriedPackage>();
  const add = (of: Omit<TriedPackage, 'entry' | 'kinds'> & { readonly sdk?: string }, kinds: Kinds) => {
    const { name, sdk = `@ai-sdk/${name}`, settings, secrets } = of;
    const { kinds: before = {}, ...known } = found.get(name) ?? {};
    const own = { name, entry: sdk.split('#')[0]!, settings, secrets, ...known };
    found.set(name, { ...own, kinds: { ...before, ...kinds } });
  };
  for (const vendor of VENDORS) add({ ...vendor, secrets: vendor.secrets ?? ['apiKey'] }, ofVendor(vendor));
  for (const vendor of SOUND_VENDORS) {
    const { speaks, hears } = vendor;
    add(
      { ...vendor, secrets: ['apiKey'] },
      { ...(speaks ? { speech: speaks.pays } : {}), ...(hears ? { transcription: hears.by ?? hears.pays } : {}) },
    );
  }
  for (const vendor of FILM_VENDORS) add({ ...vendor, secrets: [vendor.secret ?? 'apiKey'] }, { video: 'seconds' });
  return [...found.values()].toSorted((a, b) => a.name.localeCompare(b.name, 'en'));
}

/** The rows of the table of docs/reference/ai-sdk.md. */
export const tableRows = (): readonly string[] =>
  triedPackages().map(
    ({ name, kinds }) => `| \`@ai-sdk/${name}\` | ${MODEL_KINDS.map((kind) => kinds[kind] ?? '').join(' | ')} |`,
  );

import { getOrInsert } from '#wire';
import { BATCH_TIER } from '#billing/amounts';
import { claimedNameFault, displayNameFault, providerNameFault, serviceNameFault } from './names.ts';
import { show } from './problem.ts';
import { complain, isTable, type ConfigReading, readTable, valuesOf, type ForeignKeys } from './reading.ts';
import type { Table } from './toml.ts';
import type { Primitive } from './names.ts';
import type { Service, ServiceConfig, ServiceTarget } from './service.ts';
import { AGENT_BLOCK } from './blocks/agent-block.ts';
import type { BlockKind, BlockFile } from './blocks/block.ts';
import { KNOWN_PROVIDERS, knownProviderAt, type OfferedBlock } from './known-providers.ts';
import { IMAGE_BLOCK } from './blocks/image-block.ts';
import { MODEL_BLOCK } from './blocks/model-block.ts';
import { TOOL_BLOCK } from './blocks/tool-block.ts';
import { VIDEO_BLOCK } from './blocks/video-block.ts';

type AnyKind = BlockKind<Primitive, Service, ServiceTarget>;

const KINDS = {
  models: MODEL_BLOCK,
  tools: TOOL_BLOCK,
  agents: AGENT_BLOCK,
  images: IMAGE_BLOCK,
  videos: VIDEO_BLOCK,
};

export const BLOCKS: Readonly<Record<keyof typeof KINDS, AnyKind>> = KINDS;

export const BLOCK_TABLES = Object.keys(BLOCKS) as readonly (keyof typeof BLOCKS)[];

interface BlockRules {
  /** Maximum number of blocks of all kinds together. */
  readonly max: number;
  /** Whether all blocks must have the same provider. */
  readonly oneProvider: boolean;
}

/**
 * All valid blocks of a file as services. Blocks of one provider with the same name are one listing with several
 * routes. `offered`: models of its `[[providers]]`. One whose listing has a block in the file is left out.
 */
export function readBlocks(
  file: Table,
  place: BlockFile,
  rules: BlockRules,
  reading: ConfigReading,
  offered: readonly OfferedBlock[] = [],
): readonly ServiceConfig[] {
  const others = new Set(offered.map(({ path }) => path));
  const work = readEach<ServiceConfig>(file, { ...rules, offered }, reading, (kind, block, path) => {
    const read = readTable(block, path, { ...kind.offer, ...kind.target }, reading);
    const target = valuesOf(read, kind.target);
    const offer = withVendor(valuesOf(read, kind.offer), { kind, block, target });
    const say = complainAt(path, reading);
    const service = offer && kind.toService(offer, say);
    const where = target && kind.toTarget(target, say, place);
    if (where?.kind === 'sdk' && service?.primitive === 'model' && service.model.wires)
      say('params.wires', 'stands beside params.sdk, whose package has no such API', 'leave it out');
    if (where?.kind === 'http' && where.batches && service?.primitive === 'model') {
      if (!(BATCH_TIER in service.variants))
        say('params.batches', `is true without pricing.service_tiers.${BATCH_TIER}`, 'give the price of batches');
      if (service.model.zdr)
        say('params.batches', 'is true beside zdr, but a provider keeps the requests of a batch', 'leave one out');
    }
    return service && where ? { service, target: where, ...(others.has(path) ? { listed: true } : {}) } : null;
  });
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}

/**
 * All valid blocks of a registration document as services. Keys of `target` are refused, because only the service's own
 * machine should know where it runs. Yields after each block, because a thousand take 50 ms.
 */
export function readOffers(
  document: Table,
  rules: BlockRules,
  reading: ConfigReading,
): Generator<void, readonly Service[], undefined> {
  return readEach(document, rules, reading, (kind, block, path) => {
    const foreign: ForeignKeys = Object.fromEntries(
      Object.keys(kind.target).map((key) => [
        key,
        { wrong: 'says where the service runs', right: 'leave it out: a registration tells nobody' },
      ]),
    );
    const offer = valuesOf(readTable(block, path, kind.offer, reading, foreign), kind.offer);
    const say = complainAt(path, reading);
    return offer && kind.toService(offer, say);
  });
}

type Values = Readonly<Record<string, unknown>>;

/** The values of a block. What it does not say itself is that of a known vendor at its address. */
function withVendor(
  offer: Values | null,
  { kind, block, target }: { readonly kind: AnyKind; readonly block: Table; readonly target: Values | null },
): Values | null {
  const url = target?.['params.api_base'];
  if (offer === null || !('stops' in kind.offer) || block['stops'] !== undefined || typeof url !== 'string')
    return offer;
  const vendor = knownProviderAt(url);
  return vendor === undefined ? offer : { ...offer, stops: KNOWN_PROVIDERS[vendor].stops ?? null };
}

const complainAt = (path: string, reading: ConfigReading) => (key: string, wrong: string, right: string) =>
  complain(reading, `${path}.${key}`, wrong, right);

function* readEach<T>(
  file: Table,
  { offered = [], ...rules }: BlockRules & { readonly offered?: readonly OfferedBlock[] },
  reading: ConfigReading,
  readOne: (kind: AnyKind, block: Table, path: string) => T | null,
): Generator<void, readonly T[], undefined> {
  const read: T[] = [];
  const checkListing = createListingCheck(rules.oneProvider, reading);
  const names = saidIn(file);
  const take = (table: keyof typeof BLOCKS, written: Table, path: string) => {
    const block = completeBlock(written, names);
    checkListing(table, block, path);
    const one = readOne(BLOCKS[table], block, path);
    if (one !== null) read.push(one);
  };
  let count = offered.length;
  for (const table of BLOCK_TABLES) {
    const blocks = file[table];
    if (blocks === undefined) continue;
    if (!Array.isArray(blocks)) {
      complain(reading, table, `is ${show(blocks)}`, `a list of blocks: one [[${table}]] for each`);
      continue;
    }
    count += blocks.length;
    if (count > rules.max) {
      complain(reading, table, `brings the number of blocks to ${count}`, `at most ${rules.max} in all`);
      break;
    }
    for (const [index, written] of (blocks as readonly unknown[]).entries()) {
      const path = `${table}[${index}]`;
      if (isTable(written)) take(table, written, path);
      else complain(reading, path, `is ${show(written)}`, `a [[${table}]] block`);
      yield;
    }
  }
  if (offered.length === 0) return read;
  const listings = new Set(modelsIn(file).map((block) => listingOf(completeBlock(block, names))));
  for (const { path, block } of offered)
    if (!listings.has(listingOf(completeBlock(block, names)))) take('models', block, path);
  return read;
}

const modelsIn = ({ models }: Table): readonly Table[] =>
  Array.isArray(models) ? (models as readonly unknown[]).filter(isTable) : [];

/** Names from the other blocks of a file, for a block that leaves them out. */
interface SaidElsewhere {
  /** The spelling of a provider's name in the file, which must be the same everywhere. */
  readonly spelling: (provider: string) => string;
  /** The display_name of a listing. undefined if no block has one. */
  readonly displayName: (listing: string) => unknown;
}

const NOTHING_SAID: SaidElsewhere = { spelling: (provider) => provider, displayName: () => undefined };

/** A block with its `provider_name` and `display_name`, which are derived from `name` if they are absent. */
function completeBlock(block: Table, { spelling, displayName }: SaidElsewhere = NOTHING_SAID): Table {
  const { name } = block;
  if (typeof name !== 'string') return block;
  const author = /^([^/]+)\//.exec(name)?.[1];
  const whole = { ...(author === undefined ? {} : { provider_name: spelling(author) }), ...block };
  return { display_name: displayName(listingOf(whole)) ?? name, ...whole };
}

/**
 * The key of a block's listing. Blocks with the same key are one listing. A value that is not text counts as empty
 * here, and is refused elsewhere.
 */
const listingOf = ({ name, provider_name: provider }: Table): string =>
  `${textOf(provider).toLowerCase()}\n${textOf(name)}`;

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The names in the blocks: the first spelling of each provider_name, and the first display_name of each listing. */
function saidIn(file: Table): SaidElsewhere {
  const blocks = BLOCK_TABLES.flatMap((table): readonly unknown[] => {
    const listed: unknown = file[table];
    return Array.isArray(listed) ? (listed as readonly unknown[]) : [];
  }).filter(isTable);
  const spellings = new Map<string, string>();
  const displayNames = new Map<string, unknown>();
  for (const { provider_name: provider } of blocks)
    if (typeof provider === 'string') getOrInsert(spellings, provider.toLowerCase(), () => provider);
  for (const block of blocks)
    if (block['display_name'] !== undefined)
      getOrInsert(displayNames, listingOf(completeBlock(block)), () => block['display_name']);
  return {
    spelling: (provider) => spellings.get(provider.toLowerCase()) ?? provider,
    displayName: (listing) => displayNames.get(listing),
  };
}

/**
 * Finds contradictions between blocks. It compares all names that are valid by themselves, even if their block has
 * other problems.
 */
function createListingCheck(
  oneProvider: boolean,
  reading: ConfigReading,
): (table: string, block: Table, path: string) => void {
  const endpoints = new Map<string, string>();
  const listings = new Map<string, string>();
  const providers = new Map<string, string>();

  return (table, block, path) => {
    const name = sound(block['name'], serviceNameFault);
    const provider = sound(block['provider_name'], providerNameFault);
    const displayName = sound(block['display_name'], displayNameFault);
    if (provider === null) return;

    const [first = provider] = providers.values();
    const spelling = providers.get(provider.toLowerCase()) ?? provider;
    providers.set(provider.toLowerCase(), spelling);
    if (spelling !== provider)
      complain(
        reading,
        `${path}.provider_name`,
        `${show(provider)} and ${show(spelling)} differ in case only`,
        'one spelling',
      );
    else if (oneProvider && provider !== first)
      complain(
        reading,
        `${path}.provider_name`,
        `is ${show(provider)}, and that of the first block is ${show(first)}`,
        'one provider_name in all blocks',
      );
    if (name === null) return;
    const claimed = oneProvider ? claimedNameFault(table, name) : null;
    if (claimed !== null) return complain(reading, `${path}.name`, claimed, 'another name');

    const listing = listingOf(block);
    const endpoint = endpoints.get(`${table}\n${listing}`);
    if (endpoint !== undefined) {
      const line = reading.lineOf(`${endpoint}.name`);
      return complain(
        reading,
        `${path}.name`,
        `${show(name)} of provider ${show(provider)} is there twice among the ${table}${line === null ? '' : `, first on line ${line}`}`,
        oneProvider ? 'another name' : 'another name, or another provider_name',
      );
    }
    endpoints.set(`${table}\n${listing}`, path);
    if (displayName === null) return;
    const title = listings.get(listing) ?? displayName;
    listings.set(listing, title);
    if (title !== displayName)
      complain(
        reading,
        `${path}.display_name`,
        `is ${show(displayName)}, and ${show(name)} is listed as ${show(title)}`,
        'one display_name for all blocks of one name',
      );
  };
}

function sound(value: unknown, fault: (value: string) => string | null): string | null {
  return typeof value === 'string' && fault(value) === null ? value : null;
}

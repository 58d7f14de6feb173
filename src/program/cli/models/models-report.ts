import { BLOCKS, type Config, loadConfig, nearest, readTomlFile, type ServiceConfig, contextDeclared } from '#config';
import { KNOWN_PROVIDER_NAMES, KNOWN_PROVIDERS } from '#config/known-providers';
import { PRICES_DATE, PRICES_VERSION, type ProviderOffers, type WithheldModel } from '#list-prices';
import { configPath, OWN_NAME } from '../command-line.ts';
import { createListedConfig } from '../gateway/listed-config.ts';
import { CliError, onScreen, painter, type Paint, say, table, USAGE_EXIT } from '../terminal.ts';

export interface ModelsFlags {
  readonly config?: string;
  readonly json?: boolean;
  readonly offline?: boolean;
}

/** A model of the report, as `--json` has it. Prices are decimal USD, with the keys of `[models.pricing]`. */
interface ShownModel {
  readonly name: string;
  readonly provider: string;
  readonly context_length: number | null;
  readonly max_output_tokens: number | null;
  readonly input_modalities: readonly string[];
  readonly output_modalities: readonly string[];
  readonly pricing: Readonly<Record<string, unknown>>;
  /** `list`: the list of prices; `list_and_provider`: where the provider itself names a higher price. */
  readonly price_from: 'list' | 'list_and_provider' | 'file';
  /** The model of the list whose price it has. null for a price of the file. */
  readonly priced_as: string | null;
}

/** Prints the models of a file, or of providers by their names. */
export async function showModels(names: readonly string[], flags: ModelsFlags): Promise<void> {
  const file = names.length > 0 ? null : configPath(flags.config, 'serve', process.env);
  const text = file === null ? textOf(names) : readTomlFile(file);
  const listed = createListedConfig<Config>({
    load: (listText, offered = []) =>
      loadConfig({
        file,
        text: listText,
        offered,
        env: flags.offline ? withKeys(text) : process.env,
        mode: 'production',
      }),
    providersOf: ({ providers }) => providers,
    readText: () => text,
    ask: !flags.offline,
  });
  const config = await listed.read();
  const offers = listed.offers();
  const models = config.services.flatMap((one) => showModel(one, offers) ?? []);
  const withheld = [...offers.flatMap((one) => one.withheld), ...replaced(offers, models)];
  // A key that is not accepted. A provider that does not answer still has the models of the list of prices.
  if (offers.some(({ names: from }) => from === 'none')) process.exitCode = 1;
  if (flags.json) {
    const providers = offers.map(({ provider: { use, prefix, markupBps }, names: from, problem }) => ({
      use,
      prefix,
      markup: `${markupBps / 100}%`,
      names_from: from,
      problem,
    }));
    const prices = { package: '@pydantic/genai-prices', version: PRICES_VERSION, date: PRICES_DATE };
    return print(JSON.stringify({ prices, providers, models, not_offered: withheld }, null, 2));
  }
  const paint = painter();
  const width = process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY;
  for (const line of heads(offers)) say(line);
  print(
    [
      models.length === 0 ? 'No model is offered.' : modelTable(models, paint, width),
      ...(withheld.length === 0
        ? []
        : ['', paint('dim', `NOT OFFERED (${withheld.length})`), ...withheldLines(withheld, paint, width)]),
    ].join('\n'),
  );
}

const print = (text: string) => void process.stdout.write(`${text}\n`);

/** A file that names these providers, or all whose key is in the environment. */
function textOf(names: readonly string[]): string {
  for (const name of names)
    if (!(KNOWN_PROVIDER_NAMES as readonly string[]).includes(name)) {
      const guess = nearest(name, KNOWN_PROVIDER_NAMES);
      throw new CliError(
        `No provider is called ${name} here.${guess === null ? '' : ` Did you mean ${guess}?`}\nKnown: ${KNOWN_PROVIDER_NAMES.join(', ')}`,
        { exitCode: USAGE_EXIT },
      );
    }
  const words =
    names.length > 0
      ? names
      : KNOWN_PROVIDER_NAMES.filter(
          (name) =>
            KNOWN_PROVIDERS[name].lists !== null && KNOWN_PROVIDERS[name].keyVariables.some((one) => process.env[one]),
        );
  if (words.length === 0)
    throw new CliError(
      `No file is named, and the environment has no key of a provider.\nGive a file: ${OWN_NAME} models --config tollgate.toml, or a provider: ${OWN_NAME} models openai --offline`,
      { exitCode: USAGE_EXIT },
    );
  return words.map((name) => `[[providers]]\nuse = "${name}"\n`).join('');
}

const KEY_VARIABLE = /\bapi_key ?= ?["']std::env::(\w+)/g;

/** The environment, with a key for each provider: those that are not asked need none. */
function withKeys(text: string): NodeJS.ProcessEnv {
  const usual = KNOWN_PROVIDER_NAMES.flatMap((name) => KNOWN_PROVIDERS[name].keyVariables.slice(0, 1));
  const others = Array.from(text.matchAll(KEY_VARIABLE), ([, name]) => name!);
  return { ...Object.fromEntries([...usual, ...others].map((one) => [one, 'none'])), ...process.env };
}

/** A service as a row. null if it is no model. */
function showModel({ service, listed }: ServiceConfig, offers: readonly ProviderOffers[]): ShownModel | null {
  if (service.primitive !== 'model') return null;
  const { name, providerName, model } = service;
  const all = offers.filter(
    ({ provider }) => (provider.providerName ?? provider.prefix).toLowerCase() === providerName.toLowerCase(),
  );
  const source = listed ? all.flatMap(({ offered }) => offered).find((one) => one.name === name)?.source : undefined;
  const { pricing } = BLOCKS.models.toBlock(service) as { readonly pricing: Readonly<Record<string, unknown>> };
  return {
    name,
    provider: providerName,
    context_length: contextDeclared(model),
    max_output_tokens: model.maxOutputTokens,
    input_modalities: model.inputModalities,
    output_modalities: model.outputModalities,
    pricing,
    price_from: source?.kind !== 'list' ? 'file' : source.isRaised ? 'list_and_provider' : 'list',
    priced_as: source?.kind === 'list' ? source.pricedAs : null,
  };
}

/** Models of providers that a block of the file replaces. */
function replaced(offers: readonly ProviderOffers[], models: readonly ShownModel[]): readonly WithheldModel[] {
  const listed = new Set(models.filter((one) => one.priced_as !== null).map(({ name }) => name));
  return offers.flatMap(({ offered }) =>
    offered
      .filter(({ name, source }) => source.kind === 'list' && !listed.has(name))
      .map(({ name }) => ({ name, why: 'the file has a [[models]] block of this name, which is offered instead' })),
  );
}

const DAY_MS = 24 * 3_600_000;
/** After so many days a vendor has often changed some prices. */
const OLD_DAYS = 60;

function heads(offers: readonly ProviderOffers[]): readonly string[] {
  if (offers.length === 0) return [];
  const days = Math.floor((Date.now() - Date.parse(PRICES_DATE)) / DAY_MS);
  const old = days > OLD_DAYS ? '. Compare the prices with those of the providers, or update tollgate' : '';
  return [
    `List prices: genai-prices ${PRICES_VERSION} of ${PRICES_DATE}, ${days} days old${old}`,
    ...offers.map(({ provider: { use, markupBps }, names, problem, offered }) => {
      const from = {
        provider: 'listed by it',
        file: 'named in the file',
        prices: 'from the list of prices',
        none: 'none',
      }[names];
      return `${use}: ${offered.length} models, ${from}, list price + ${markupBps / 100}%${problem === null ? '' : `: ${problem}`}`;
    }),
  ];
}

const HEADS = ['MODEL', 'CONTEXT', 'TAKES', 'IN', 'CACHED', 'OUT', 'MORE', 'PRICE FROM'] as const;
type Head = (typeof HEADS)[number];
const RIGHT: readonly Head[] = ['CONTEXT', 'IN', 'CACHED', 'OUT'];
/** Columns that are left out if the terminal is too narrow, in this order. */
const SPARE: readonly Head[] = ['MORE', 'TAKES', 'PRICE FROM', 'CACHED', 'CONTEXT'];

/** Prices are USD for 1M tokens. */
function modelTable(models: readonly ShownModel[], paint: Paint, width: number): string {
  const rows = models.map(rowOf);
  let heads: readonly Head[] = HEADS;
  const widthOf = (head: Head) => Math.max(head.length, ...rows.map((row) => row[head].length));
  const total = () => heads.reduce((sum, head) => sum + widthOf(head) + 2, -2);
  for (const spare of SPARE) if (total() > width) heads = heads.filter((head) => head !== spare);
  if (total() <= width)
    return table(
      heads,
      rows.map((row) => heads.map((head) => row[head])),
      paint,
      RIGHT,
    );
  return rows.map((row) => `${onScreen(row.MODEL)}\n  ${row.IN} in, ${row.OUT} out`).join('\n');
}

function rowOf(model: ShownModel): Readonly<Record<Head, string>> {
  const { pricing: prices } = model;
  const usd = (key: string) => (typeof prices[key] === 'string' ? prices[key] : '-');
  const more = Object.entries(prices).flatMap(([key, value]) => {
    if (['prompt', 'completion', 'input_cache_read'].includes(key)) return [];
    if (key === 'tiers') return (value as readonly Readonly<Record<string, unknown>>[]).map(tierInWords);
    if (key === 'service_tiers')
      return Object.entries(value as Readonly<Record<string, object>>).map(serviceTierInWords);
    return typeof value === 'string' ? [`${key} ${value}`] : [];
  });
  return {
    MODEL: model.name,
    CONTEXT: model.context_length === null ? '-' : String(model.context_length),
    TAKES: model.output_modalities.includes('embeddings') ? 'embeddings' : model.input_modalities.join('+'),
    IN: usd('prompt'),
    CACHED: usd('input_cache_read'),
    OUT: usd('completion'),
    MORE: more.join(', '),
    'PRICE FROM':
      model.priced_as === null
        ? 'the file'
        : `${model.priced_as}${model.price_from === 'list' ? '' : ', raised by its provider'}`,
  };
}

const tierInWords = ({ above, ...prices }: Readonly<Record<string, unknown>>): string =>
  `above ${String(above)}: ${inAndOut(prices)}`;

const serviceTierInWords = ([name, prices]: readonly [string, object]): string =>
  `${name}: ${inAndOut(prices as Readonly<Record<string, unknown>>)}`;

/** Embeddings have no price of what comes out. */
const inAndOut = ({ prompt, completion }: Readonly<Record<string, unknown>>): string =>
  [prompt, completion].flatMap((price) => (typeof price === 'string' ? [price] : [])).join('/');

function withheldLines(withheld: readonly WithheldModel[], paint: Paint, width: number): readonly string[] {
  const longest = Math.max(...withheld.map(({ name }) => name.length));
  const isWide = width >= longest + 40;
  return withheld.map(({ name, why }) =>
    isWide
      ? `${onScreen(name).padEnd(longest)}  ${paint('dim', onScreen(why))}`
      : `${onScreen(name)}\n  ${paint('dim', onScreen(why))}`,
  );
}

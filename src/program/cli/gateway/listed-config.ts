import type { ListedProvider, OfferedBlock } from '#config/known-providers';
import type { LastLists, ProviderOffers } from '#list-prices';

/**
 * A configuration whose file may name providers, with the models that these offer. `C` is what the file is read as. All
 * functions that read reject with ConfigError if the file has problems.
 */
export interface ListedConfig<C> {
  /**
   * Reads the text, asks its providers, and reads it again with their models. After a rejection the text before stays
   * in use. Without a text it reads the file.
   */
  read(text?: string): Promise<C>;
  /** Asks the providers again. Whether anything that they offer has changed. */
  askAgain(): Promise<boolean>;
  /** The configuration of the text that was read last, with the models that were offered last. */
  current(): Promise<C>;
  /** The models of the providers. Empty without providers. */
  offers(): readonly ProviderOffers[];
}

interface ListedOptions<C> {
  /**
   * Reads a text. `offered`: the models of its providers; undefined before they were asked. `offers`: what became of
   * each provider, in words.
   */
  readonly load: (
    text: string,
    offered: readonly OfferedBlock[] | undefined,
    offers?: readonly string[],
  ) => C | Promise<C>;
  readonly providersOf: (config: C) => readonly ListedProvider[];
  readonly readText: () => string;
  /** Whether providers are asked. Otherwise the list of prices has the names. Default true. */
  readonly ask?: boolean;
  /** Epoch milliseconds. */
  readonly now?: () => number;
}

export function createListedConfig<C>({
  load,
  providersOf,
  readText,
  ask = true,
  now = Date.now,
}: ListedOptions<C>): ListedConfig<C> {
  const last: LastLists = new Map();
  let text = '';
  let offers: readonly ProviderOffers[] = [];
  const blocksOf = (all: readonly ProviderOffers[]) => all.flatMap(({ offered }) => offered);
  const offersOf = async (config: C) => {
    const providers = providersOf(config);
    if (providers.length === 0) return [];
    // Loaded here, because most files name no provider and the list of prices is large.
    const { offerModels } = await import('#list-prices');
    return offerModels(providers, { now: now(), ask, last });
  };
  return {
    async read(newText = readText()) {
      const plain = await load(newText, undefined);
      const next = await offersOf(plain);
      const config = next.length === 0 ? plain : await load(newText, blocksOf(next), offersInWords(next));
      [text, offers] = [newText, next];
      return config;
    },
    async askAgain() {
      const textBefore = text;
      const next = await offersOf(await load(textBefore, undefined));
      // The file was read again meanwhile.
      if (text !== textBefore) return false;
      const isSame = JSON.stringify(blocksOf(next)) === JSON.stringify(blocksOf(offers));
      offers = next;
      return !isSame;
    },
    current: async () => load(text, offers.length === 0 ? undefined : blocksOf(offers)),
    offers: () => offers,
  };
}

/** News for the operator about the providers of the file, one line for each. */
export function offersInWords(offers: readonly ProviderOffers[]): readonly string[] {
  return offers.map(({ provider, names, problem, offered, withheld }) => {
    const count = `${offered.length} ${offered.length === 1 ? 'model' : 'models'}`;
    const rest = withheld.length === 0 ? '' : `, ${withheld.length} not: tollgate models says why`;
    if (names === 'none' || (problem !== null && offered.length === 0))
      return `${provider.prefix}/…: nothing is offered: ${problem}`;
    if (problem === null) return `${provider.prefix}/…: ${count} offered${rest}`;
    const subject =
      names === 'prices' ? 'the models of the list of prices are' : 'the models that it listed before are';
    return `${provider.prefix}/…: ${problem}; ${subject} offered until it answers (${count})`;
  });
}

const OFTEN_MS = 10 * 60_000;
const SOON_MS = 30_000;

interface Telling {
  /** Takes the current configuration into the gateway or the proxy. */
  readonly take: () => Promise<unknown>;
  readonly warn: (line: string) => void;
}

/**
 * Asks the providers every 10 minutes, and 30 seconds after one did not answer, until `stop` is called. `take` is
 * called after a change.
 */
export function keepListed(
  listed: Pick<ListedConfig<unknown>, 'askAgain' | 'offers'>,
  { take, warn }: Telling,
): { stop(): void } {
  let isStopped = false;
  let timer: NodeJS.Timeout | undefined;
  let lastWarning = '';
  const wait = () => {
    if (isStopped) return;
    const isAway = listed.offers().some(({ problem }) => problem !== null);
    timer = setTimeout(() => void again(), isAway ? SOON_MS : OFTEN_MS);
    timer.unref();
  };
  const again = async () => {
    try {
      if (await listed.askAgain()) await take();
      const lines = offersInWords(listed.offers().filter(({ problem }) => problem !== null));
      // An outage is told once.
      if (lines.join('\n') !== lastWarning) for (const line of lines) warn(line);
      lastWarning = lines.join('\n');
    } catch (error) {
      warn(`the models of the providers could not be taken: ${error instanceof Error ? error.message : String(error)}`);
    }
    wait();
  };
  wait();
  return {
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}

import type { Address } from '@solana/kit';
import { ChainUnavailable, type Incoming, type IncomingPage } from './chain.ts';
import type { SignatureEntry, SolanaNode } from './solana-node.ts';
import { isSignature } from './solana-address.ts';
import { memoOf, movementsInto } from './solana-transaction.ts';

/** Transactions that are read for one page. */
const PAGE = 20;
/** What a node gives at once. */
const WALK_PAGE = 1_000;
/** A million transactions since the cursor: somebody has to look. */
const WALK_PAGES = 1_000;
/** Of what is between the cursor and now, the oldest are kept; the rest is walked again. */
const KEPT_MAX = 20_000;

interface Cursor {
  readonly slot: bigint;
  /** The newest transaction of that time; null where there was none. */
  readonly signature: string | null;
}

/** What is known to come after a cursor: oldest first. */
interface Backlog {
  after: string;
  entries: SignatureEntry[];
  /** Everything up to this slot is in `entries`, unless `cut`. */
  readonly upTo: bigint;
  readonly cut: boolean;
}

export interface SolanaIncoming {
  page(cursor: string | null): Promise<IncomingPage>;
  balanceAt(cursor: string): Promise<bigint | null>;
}

/** What came into the treasury's token account, in finality. The chain lists newest first and only forwards is remembered: so each backlog is walked once. */
export function createIncoming(node: SolanaNode, network: string, account: Address, asset: Address): SolanaIncoming {
  let backlog: Backlog | null = null;

  async function walk(text: string, cursor: Cursor): Promise<Backlog> {
    const final = await node.moment('finalized');
    let newestFirst: SignatureEntry[] = [];
    let before: string | undefined;
    let cut = false;
    for (let page = 0; page < WALK_PAGES; page += 1) {
      const entries = await node.signatures(account, 'finalized', { limit: WALK_PAGE, minSlot: final.slot, ...(before === undefined ? {} : { before }) });
      // A node that has forgotten the cursor has perhaps forgotten what came after it, too.
      const end = entries.findIndex(({ slot, signature }) => signature === cursor.signature || slot < cursor.slot || (cursor.signature === null && slot === cursor.slot));
      newestFirst.push(...(end === -1 ? entries : entries.slice(0, end)));
      if (newestFirst.length > KEPT_MAX) {
        newestFirst = newestFirst.slice(-KEPT_MAX);
        cut = true;
      }
      if (end !== -1 && cursor.signature !== null && entries[end]?.signature !== cursor.signature) break;
      if (end !== -1) return { after: text, entries: newestFirst.reverse(), upTo: final.slot, cut };
      before = entries.at(-1)?.signature;
      if (entries.length < WALK_PAGE) {
        if (cursor.signature !== null || (await node.oldestSlot()) > cursor.slot + 1n) break;
        return { after: text, entries: newestFirst.reverse(), upTo: final.slot, cut };
      }
    }
    throw new ChainUnavailable(`the Solana node's history does not reach back to ${text}, where reading it ended before`);
  }

  async function eventsOf({ signature, failed }: SignatureEntry): Promise<Incoming[]> {
    if (failed) return [];
    const transaction = await node.transaction(signature, 'finalized');
    if (transaction === null) throw new ChainUnavailable('the Solana node tells a transaction that it does not show');
    const movements = movementsInto(transaction, account, asset);
    const memo = memoOf(transaction);
    return movements.map(({ sender, amount }, at) => ({
      id: `${signature}:${at}`,
      transaction: signature,
      amount,
      height: transaction.slot,
      confirmations: FINAL_CONFIRMATIONS,
      final: true,
      sender,
      // A signed payment makes one movement. What makes one without having been signed for us has an id that nobody has kept.
      paymentId: movements.length === 1 && sender !== '' ? `${network}/${transaction.messageHash}` : null,
      memo,
    }));
  }

  /** The newest transaction of the account that is final, as of `minSlot` or later. */
  async function newest(minSlot: bigint): Promise<SignatureEntry | null> {
    const [entry] = await node.signatures(account, 'finalized', { limit: 1, minSlot });
    return entry ?? null;
  }

  return {
    async page(text) {
      if (text === null) {
        const { slot } = await node.moment('finalized');
        const last = await newest(slot);
        const height = last !== null && last.slot > slot ? last.slot : slot;
        return { events: [], cursor: last === null ? `${slot}:-` : `${last.slot}:${last.signature}`, height, more: false };
      }
      const cursor = parse(text);
      const current = backlog?.after === text && backlog.entries.length > 0 ? backlog : await walk(text, cursor);
      const batch = current.entries.slice(0, PAGE);
      const events = (await Promise.all(batch.map(eventsOf))).flat();
      const rest = current.entries.slice(PAGE);
      const last = batch.at(-1);
      const next = last === undefined ? text : `${last.slot}:${last.signature}`;
      backlog = { ...current, after: next, entries: rest };
      const more = rest.length > 0 || current.cut;
      const height = rest[0] !== undefined ? rest[0].slot - 1n : current.cut && last !== undefined ? last.slot - 1n : current.upTo;
      return { events, cursor: next, height, more };
    },

    async balanceAt(text) {
      const cursor = parse(text);
      const { slot, amount } = await node.tokens(account);
      // Whatever changed the balance mentions the account: nothing after the cursor as of that slot or later, so it is the cursor's.
      const last = await newest(slot);
      return (last?.signature ?? null) === cursor.signature ? amount : null;
    },
  };
}

/** Blocks on top of what is final: at least so many. */
const FINAL_CONFIRMATIONS = 32;

function parse(text: string): Cursor {
  const [slot = '', signature, ...more] = text.split(':');
  if (!/^\d{1,20}$/.test(slot) || more.length > 0 || (signature !== '-' && !isSignature(signature)))
    throw new Error(`a cursor of Solana is <slot>:<signature>, not ${JSON.stringify(text.slice(0, 120))}`);
  return { slot: BigInt(slot), signature: signature === '-' ? null : signature };
}

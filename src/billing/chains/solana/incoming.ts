import type { Address } from '@solana/kit';
import { ChainUnavailable, type Incoming, type IncomingPage } from '../chain.ts';
import type { SolanaNode } from './node.ts';
import type { SignatureEntry } from './node-answers.ts';
import { memoOf, movementsInto, type SolanaTransaction } from './transaction.ts';

/** How many transactions are read for one page. */
const PAGE = 20;
/** How many transactions a node lists in one answer. */
const WALK_PAGE = 1_000;
/** The maximum of list requests: beyond a million transactions since the cursor an operator has to look. */
const WALK_PAGES = 1_000;
/** How many transactions after the cursor are kept. The oldest are kept; the others are listed again later. */
const KEPT_MAX = 20_000;
/**
 * Reading stays this many slots behind the final slot. Nodes write the list of an account's transactions after the
 * slot, and a slot is never read twice.
 */
const SETTLED_SLOTS = 32n;
/** A final slot has at least this many slots on top. */
const FINAL_CONFIRMATIONS = 32;

interface Cursor {
  /** All transactions up to this slot were read. */
  readonly slot: bigint;
  /**
   * The last transaction that was read, perhaps in the next slot; null if no transaction was read. A list without it is
   * incomplete.
   */
  readonly last: Pick<SignatureEntry, 'slot' | 'signature'> | null;
}

/** The transactions after a cursor, the oldest first. */
interface Backlog {
  readonly after: string;
  readonly entries: readonly SignatureEntry[];
  /** All transactions up to this slot are in `entries`, unless `cut` is true. */
  readonly upTo: bigint;
  readonly cut: boolean;
}

interface SolanaIncoming {
  page(cursor: string | null, most?: bigint): Promise<IncomingPage>;
  balanceAt(cursor: string): Promise<bigint | null>;
}

/**
 * Reads final transfers into the treasury's token account. Nodes list the newest transactions first, but cursors go
 * forwards, so each backlog is listed once and kept. `before`: the account of the treasury that hands over to this one.
 * If one transaction pays into both, each account reports its part with its own id.
 */
export function createIncoming(
  node: SolanaNode,
  network: string,
  account: Address,
  asset: Address,
  before: Address | null,
): SolanaIncoming {
  let backlog: Backlog | null = null;

  async function settled(most?: bigint): Promise<{ readonly slot: bigint; readonly upTo: bigint }> {
    const { slot } = await node.moment('finalized');
    const upTo = slot > SETTLED_SLOTS ? slot - SETTLED_SLOTS : 0n;
    return { slot, upTo: most !== undefined && most < upTo ? most : upTo };
  }

  async function walk(text: string, { slot: done, last }: Cursor, most?: bigint): Promise<Backlog> {
    const { slot: minSlot, upTo } = await settled(most);
    let newestFirst: SignatureEntry[] = [];
    let cut = false;
    let before: string | undefined;
    for (let page = 0; page < WALK_PAGES; page += 1) {
      const entries = await node.signatures(account, 'finalized', {
        limit: WALK_PAGE,
        minSlot,
        ...(before === undefined ? {} : { before }),
      });
      const end = entries.findIndex(({ signature }) => signature === last?.signature);
      newestFirst.push(...(end === -1 ? entries : entries.slice(0, end)).filter(({ slot }) => slot <= upTo));
      cut ||= newestFirst.length > KEPT_MAX;
      newestFirst = newestFirst.slice(-KEPT_MAX);
      const bottom = entries.length < WALK_PAGE;
      if (end === -1 && bottom) {
        // The last transaction may be older than the node's history. Then the node must have all slots after the
        // cursor.
        const oldest = await node.oldestSlot();
        if (oldest > done + 1n || (last !== null && oldest <= last.slot)) break;
        newestFirst = newestFirst.filter(({ slot }) => slot > done);
      }
      if (end !== -1 || bottom)
        return { after: text, entries: newestFirst.reverse(), upTo: upTo > done ? upTo : done, cut };
      before = entries.at(-1)?.signature;
    }
    throw new ChainUnavailable(
      `the Solana node's list of the treasury's transactions does not reach back to ${text}, the last one that was read`,
    );
  }

  async function eventsOf(entry: SignatureEntry): Promise<Incoming[]> {
    if (entry.failed) return [];
    const { signature } = entry;
    const transaction = await transactionOf(node, entry);
    const movements = movementsInto(transaction, account, asset);
    const memo = memoOf(transaction);
    // The reader of the other treasury reports this transaction too. A signed payment pays only one treasury.
    const paysBoth = before !== null && movementsInto(transaction, before, asset).length > 0;
    return movements.map(({ sender, amount }, at) => ({
      id: paysBoth ? `${signature}:${account}:${at}` : `${signature}:${at}`,
      transaction: signature,
      amount,
      height: transaction.slot,
      confirmations: FINAL_CONFIRMATIONS,
      final: true,
      sender,
      // A signed payment causes one movement. Another transaction with one movement gets an id here that no stored
      // payment has.
      paymentId: !paysBoth && movements.length === 1 && sender !== '' ? `${network}/${transaction.messageHash}` : null,
      memo,
    }));
  }

  return {
    async page(text, most) {
      if (text === null) {
        const { slot, upTo } = await settled();
        const entries = await node.signatures(account, 'finalized', { limit: WALK_PAGE, minSlot: slot });
        const last = entries.find((entry) => entry.slot <= upTo) ?? null;
        return { events: [], cursor: textOf({ slot: upTo, last }), height: upTo, more: false };
      }
      const cursor = parse(text);
      const { entries, upTo, cut } =
        backlog?.after === text && backlog.entries.length > 0 && (most === undefined || backlog.upTo <= most)
          ? backlog
          : await walk(text, cursor, most);
      const batch = entries.slice(0, PAGE);
      const rest = entries.slice(PAGE);
      const events = (await Promise.all(batch.map(eventsOf))).flat();
      const last = batch.at(-1) ?? cursor.last;
      const [next] = rest;
      // The slot of the last transaction may contain more transactions that were not read.
      const height = next !== undefined ? next.slot - 1n : cut && last !== null ? last.slot - 1n : upTo;
      const after = textOf({ slot: height, last });
      backlog = { after, entries: rest, upTo, cut };
      return { events, cursor: after, height, more: rest.length > 0 || cut };
    },

    async balanceAt(text) {
      const { slot: done, last } = parse(text);
      if ((await node.account(account, 'finalized')) === null)
        throw new ChainUnavailable(
          `the treasury's token account ${account} is new and not final yet. This takes about half a minute`,
        );
      const { slot, amount } = await node.tokens(account);
      if (slot < done) return null;
      // Each change of the balance is in the account's list. If the list, as of the balance's slot or later, has
      // nothing after the cursor's last transaction, the balance is that of the cursor.
      const entries = await node.signatures(account, 'finalized', { limit: WALK_PAGE, minSlot: slot });
      if (entries[0]?.signature === last?.signature) return amount;
      // Otherwise it is the balance that the last transaction left behind. A busy treasury is always in this case.
      return last === null ? null : balanceAfter({ node, account, asset }, last.signature, entries);
    },
  };
}

async function transactionOf(node: SolanaNode, { signature }: SignatureEntry): Promise<SolanaTransaction> {
  const transaction = await node.transaction(signature, 'finalized');
  if (transaction === null) throw new ChainUnavailable('the Solana node lists a transaction that it does not return');
  return transaction;
}

/**
 * The balance after a transaction, if it is the last one of its slot in the list; else null. Older nodes list a slot
 * in another order than it was executed in. So each balance must follow from the one before. All orders that do so end
 * with the same balance, unless the slot ends with the balance that it began with.
 */
async function balanceAfter(
  { node, account, asset }: { readonly node: SolanaNode; readonly account: Address; readonly asset: Address },
  signature: string,
  newestFirst: readonly SignatureEntry[],
): Promise<bigint | null> {
  const last = newestFirst.find((one) => one.signature === signature);
  const ofSlot = newestFirst.filter(({ slot }) => slot === last?.slot).reverse();
  if (ofSlot.at(-1)?.signature !== signature || ofSlot.length > PAGE) return null;
  const balances: bigint[] = [];
  for (const transaction of await Promise.all(ofSlot.map((one) => transactionOf(node, one)))) {
    const [before, after] = [transaction.before.get(account), transaction.after.get(account)];
    if (before?.mint !== asset || after?.mint !== asset) return null;
    if (balances.length > 0 && before.amount !== balances.at(-1)) return null;
    if (balances.length === 0) balances.push(before.amount);
    balances.push(after.amount);
  }
  const end = balances.at(-1)!;
  return end === balances[0] && balances.some((one) => one !== end) ? null : end;
}

function textOf({ slot, last }: Cursor): string {
  return last === null ? `${slot}` : `${slot}:${last.slot}:${last.signature}`;
}

function parse(text: string): Cursor {
  const match = /^(\d{1,20})(?::(\d{1,20}):([1-9A-HJ-NP-Za-km-z]{64,88}))?$/.exec(text);
  if (match === null)
    throw new Error(
      `a cursor of Solana is <slot>:<slot>:<signature> of the last that was read, not ${JSON.stringify(text.slice(0, 120))}`,
    );
  const [, slot = '', encoded, signature] = match;
  return {
    slot: BigInt(slot),
    last: encoded === undefined || signature === undefined ? null : { slot: BigInt(encoded), signature },
  };
}

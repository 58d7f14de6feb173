import type { Row } from '#store';
import { checkCharge } from '../ledger/check-charge.ts';
import { earningsOf, escrowOf } from '../ledger/ledger.ts';
import type { MovementTexts } from '../ledger/log-movements.ts';
import { priceId, type Rates } from '../prices/price.ts';
import { ratesFromText } from '../prices/price-book.ts';
import { type Receipt, type ReceiptChecker, tagsOfLock } from '../receipt.ts';
import { ArchiveError, rowOfCall, SetDigest, type ArchivedCall, type LeftMovement } from './archive-lines.ts';
import type { TransferFields } from './closing-rows.ts';

interface PendingCall {
  readonly moved: LeftMovement[];
  call: Row | null;
}

const STATES: Readonly<Record<string, string>> = { settled: 'settle', released: 'release', expired: 'expire' };

/**
 * Matches the calls and transfers of an archive with its movements, which come in any order over the chains. A call is
 * forgotten when it is complete, so memory holds the open ones.
 */
export class MatchedCalls {
  readonly #endsAt: number;
  readonly #checker: ReceiptChecker;
  readonly #pending = new Map<string, PendingCall>();
  readonly #movedTransfers = new Map<string, LeftMovement>();
  readonly #rates = new Map<string, Rates>();
  readonly #services = new Map<string, string>();
  readonly #digest = new SetDigest();
  transfers = 0;
  receipts = 0;

  constructor(endsAt: number, checker: ReceiptChecker) {
    this.#endsAt = endsAt;
    this.#checker = checker;
  }

  price(id: string, provider: string, service: string, text: string): void {
    const rates = attempt(() => ratesFromText(text));
    if (rates === null || priceId(provider, service, rates) !== id)
      throw new ArchiveError(`price ${id} does not match its id`);
    this.#rates.set(id, rates);
    this.#services.set(id, service);
  }

  serviceOf(price: string | null): string | null {
    return price === null ? null : (this.#services.get(price) ?? null);
  }

  move(moved: LeftMovement): void {
    const [kind, id] = moved[3];
    if (kind === 'transfer') {
      if (this.#movedTransfers.has(id)) throw new ArchiveError(`transfer ${id} is in the journal twice`);
      return void this.#movedTransfers.set(id, moved);
    }
    const pending = this.#pendingCall(id);
    pending.moved.push(moved);
    if (pending.call !== null) this.#complete(id, pending);
  }

  transfer(fields: TransferFields): void {
    const [id, from, to, amount, , at] = fields;
    const [, , , movement, time] = this.#movedTransfers.get(id) ?? refuse(`transfer ${id} is not in the journal`);
    const isSame = movement[2] === from && movement[3] === to && movement[4] === amount && time === at;
    if (!isSame || at >= this.#endsAt) throw new ArchiveError(`transfer ${id} and the journal differ`);
    this.#movedTransfers.delete(id);
    this.#digest.add(...fields);
    this.transfers += 1;
  }

  call(call: ArchivedCall, receipt: readonly [string, string, string] | null): void {
    const row = rowOfCall(call);
    const id = row['id'] as string;
    if ((row['created_at'] as bigint) >= this.#endsAt || (row['resolved_at'] as bigint) >= this.#endsAt)
      throw new ArchiveError(`call ${id} is of a later time than the archive`);
    if (row['state'] === 'settled') {
      const checked = attempt(() => checkCharge(row, this.#rates));
      if (checked === null) throw new ArchiveError(`call ${id}: its charge cannot be computed`);
      if (!checked.ok) throw new ArchiveError(checked.problems.join('; '));
    }
    if (receipt !== null) this.#receipt(row, receipt);
    const pending = this.#pendingCall(id);
    if (pending.call !== null) throw new ArchiveError(`call ${id} is in it twice`);
    pending.call = row;
    this.#complete(id, pending);
  }

  #receipt(row: Row, [account, primitive, signature]: readonly [string, string, string]): void {
    const receipt = receiptOfCall(row, account, primitive);
    if (attempt(() => this.#checker.isReceipt(receipt, signature)) !== true)
      throw new ArchiveError(`call ${receipt.id}: the receipt was not signed with the key of the archive`);
    this.receipts += 1;
  }

  #pendingCall(id: string): PendingCall {
    let pending = this.#pending.get(id);
    if (pending === undefined) this.#pending.set(id, (pending = { moved: [], call: null }));
    return pending;
  }

  /** Compares a call with its movements, once both its beginning and its end are there. */
  #complete(id: string, { moved, call }: PendingCall): void {
    const row = call!;
    const ofKinds = (...kinds: readonly string[]) => moved.filter(([, , , [kind]]) => kinds.includes(kind));
    const locks = ofKinds('lock');
    const resolved = ofKinds('settle', 'release', 'expire');
    if (locks.length === 0 || resolved.length === 0) return;
    const lent = ofKinds('lend');
    const returns = ofKinds('return');
    const problem = problemOf(row, { locks, resolved, lent, returns });
    if (problem !== null) throw new ArchiveError(`call ${id}: ${problem}`);
    this.#pending.delete(id);
  }

  /**
   * Compares what is left with what the archive says is left. Returns the digest of the transfers. `openCalls`
   * must be calls of which something is left.
   */
  end(leftovers: readonly LeftMovement[], openCalls: readonly string[]): string {
    const digest = new SetDigest();
    for (const moved of leftovers) digest.add(...flat(moved));
    const own = new SetDigest();
    for (const { moved, call } of this.#pending.values()) {
      if (call !== null)
        throw new ArchiveError(`call ${call['id'] as string} lacks its beginning or its end in the journal`);
      for (const one of moved) own.add(...flat(one));
    }
    for (const moved of this.#movedTransfers.values()) own.add(...flat(moved));
    if (own.digest() !== digest.digest())
      throw new ArchiveError(
        'the journal has movements of calls or transfers that are neither in the archive nor left',
      );
    const lost = openCalls.find((id) => !this.#pending.has(id));
    if (lost !== undefined) throw new ArchiveError(`call ${lost} is said to stay, and has no movement`);
    return this.#digest.digest();
  }
}

/** The receipt of a call, of its columns and of what is beside them: the account in CAIP-10, and the primitive. */
export function receiptOfCall(row: Row, account: string, primitive: string): Receipt {
  const parent = row['parent'] as string | null;
  return {
    id: row['id'] as string,
    account,
    provider: row['provider'] as string,
    ...(primitive === '' ? {} : { primitive }),
    ...(parent === null ? {} : { parent }),
    tags: tagsOfLock(row['lock_detail'] as string),
    price: row['price'] as string,
    lock: row['amount'] as bigint,
    usage: (row['usage'] as string | null) ?? '{}',
    charged: row['charged'] as bigint,
    fee: row['fee'] as bigint,
    time: Number(row['resolved_at']),
  };
}

const flat = ([chain, batch, position, movement, at]: LeftMovement) => [chain, batch, position, ...movement, at];

interface MovesOfCall {
  readonly locks: readonly LeftMovement[];
  readonly resolved: readonly LeftMovement[];
  readonly lent: readonly LeftMovement[];
  readonly returns: readonly LeftMovement[];
}

/** How a call differs from its movements; null if they agree. */
function problemOf(row: Row, { locks, resolved, lent, returns }: MovesOfCall): string | null {
  if (locks.length > 1 || resolved.length > 1) return 'the journal opens or resolves it twice';
  const [, , , begin, beganAt] = locks[0]!;
  const [, , , end, endedAt] = resolved[0]!;
  const account = escrowOf(row['account'] as string);
  if (begin[2] !== account || begin[4] !== `${row['amount'] as bigint}` || BigInt(beganAt) !== row['created_at'])
    return 'it and its lock in the journal differ';
  const held = (row['amount'] as bigint) - (row['lent'] as bigint);
  const provider = row['provider'] as string | null;
  const isSame =
    end[0] === STATES[row['state'] as string] &&
    end[2] === account &&
    end[3] === (provider === null ? null : earningsOf(provider)) &&
    end[4] === `${held}` &&
    amountsOf(end).every((amount, index) => amount === row[AMOUNTS[index]!]) &&
    end[8] === row['price'] &&
    BigInt(endedAt) === row['resolved_at'];
  if (!isSame) return 'it and its end in the journal differ';
  const parent = row['parent'] as string | null;
  if (lent.length !== (parent === null ? 0 : 1) || returns.length > (parent === null ? 0 : 1))
    return 'it did not draw on its parent once';
  const ofParent = ([, , , [, , from, to, amount]]: LeftMovement, due: bigint) =>
    from === account && to === parent && amount === `${due}`;
  if (!lent.every((one) => ofParent(one, row['amount'] as bigint))) return 'it and what it drew on its parent differ';
  if (!returns.every((one) => ofParent(one, held - (row['charged'] as bigint))))
    return 'it and what it gave back differ';
  return null;
}

const AMOUNTS = ['charged', 'fee', 'drawn'] as const;
const amountsOf = (movement: MovementTexts) => [movement[5], movement[6], movement[7]].map(BigInt);

function refuse(message: string): never {
  throw new ArchiveError(message);
}

function attempt<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}

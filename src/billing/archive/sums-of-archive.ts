import { IdRanges } from '../ledger/call-ids.ts';
import { SetDigest, type ArchivedCall } from './archive-lines.ts';

const DAY_MS = 86_400_000;
/** The beginning of a call's detail ({"primitive":"model"), by which the earnings of a provider are grouped. */
const OPENING = 20;

interface Earned {
  requests: number;
  earned: bigint;
  readonly flags: Record<string, number>;
}

/** The part of an archive's calls that stays in the database: sums, and their ids as ranges. */
export class SumsOfArchive {
  readonly #spending = new Map<string, Map<string, bigint>>();
  readonly #earned = new Map<string, Earned>();
  readonly #ids = new IdRanges();
  readonly #idsOfAccounts = new Map<string, IdRanges>();
  settled = 0;
  released = 0;
  expired = 0;
  charged = 0n;
  shortfall = 0n;

  get calls(): number {
    return this.settled + this.released + this.expired;
  }

  add(call: ArchivedCall, service: string | null): void {
    const id = call['id'] as string;
    const account = call['account'] as string;
    this.#ids.add(id);
    let own = this.#idsOfAccounts.get(account);
    if (own === undefined) this.#idsOfAccounts.set(account, (own = new IdRanges()));
    own.add(id);
    if (call['state'] === 'settled') this.settled += 1;
    else if (call['state'] === 'released') this.released += 1;
    else this.expired += 1;
    const charged = BigInt(call['charged']!);
    this.charged += charged;
    this.shortfall += BigInt(call['shortfall']!);
    const budget = call['budget'] as string | null;
    if (budget !== null && charged > 0n) this.#spend(account, budget, charged);
    if (call['provider'] !== null) this.#earn(call, service ?? '', charged - BigInt(call['fee']!));
  }

  #spend(account: string, budget: string, charged: bigint): void {
    let budgets = this.#spending.get(account);
    if (budgets === undefined) this.#spending.set(account, (budgets = new Map<string, bigint>()));
    budgets.set(budget, (budgets.get(budget) ?? 0n) + charged);
  }

  #earn(call: ArchivedCall, service: string, earned: bigint): void {
    const day = Math.floor((call['resolved_at'] as number) / DAY_MS);
    const key = JSON.stringify([call['provider'], day, service, (call['lock_detail'] as string).slice(0, OPENING)]);
    let sum = this.#earned.get(key);
    if (sum === undefined) this.#earned.set(key, (sum = { requests: 0, earned: 0n, flags: {} }));
    sum.requests += 1;
    sum.earned += earned;
    for (const flag of flagsOf(call['detail'] as string | null)) sum.flags[flag] = (sum.flags[flag] ?? 0) + 1;
  }

  /** Account, budgets, charged. */
  spending(): readonly (readonly [string, string, string])[] {
    return [...this.#spending].flatMap(([account, budgets]) =>
      [...budgets].map(([budget, charged]) => [account, budget, `${charged}`] as const),
    );
  }

  spendingDigest(): string {
    const digest = new SetDigest();
    for (const row of this.spending()) digest.add(...row);
    return digest.digest();
  }

  /** Prefix, first, last. */
  ids(): ReturnType<IdRanges['rows']> {
    return this.#ids.rows();
  }

  /** Account, prefix, first, last. */
  idsOfAccounts(): readonly (readonly [string, string, string, string])[] {
    return [...this.#idsOfAccounts].flatMap(([account, ids]) => ids.rows().map((row) => [account, ...row] as const));
  }

  /** Provider, day, service, beginning of the detail, requests, earned, flags. */
  earnings(): readonly (readonly (string | number)[])[] {
    return [...this.#earned].map(([key, { requests, earned, flags }]) => [
      ...(JSON.parse(key) as readonly (string | number)[]),
      requests,
      `${earned}`,
      JSON.stringify(flags),
    ]);
  }
}

/** The flags of a call: rules that its reply broke. */
function flagsOf(detail: string | null): readonly string[] {
  if (detail === null || !detail.includes('"flags":[')) return [];
  const { flags } = JSON.parse(detail) as { flags?: unknown };
  return Array.isArray(flags) ? flags.filter((flag) => typeof flag === 'string') : [];
}

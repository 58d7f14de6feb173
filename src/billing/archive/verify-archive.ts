import { createReceiptChecker, type ReceiptChecker } from '../receipt.ts';
import type { WrittenFile } from './archive-file.ts';
import { readArchiveFile } from './archive-file.ts';
import { ArchiveError, FORMAT, type ArchiveHeader, type LeftMovement, type ArchiveLine } from './archive-lines.ts';
import { ClosingDigest, type ChainEnd, type ClosingBalance } from './closing-rows.ts';
import { isRightGroup, movementsOfGroup } from './journal-groups.ts';
import { MatchedCalls } from './matched-calls.ts';
import { RunningBooks } from './running-books.ts';
import { SumsOfArchive } from './sums-of-archive.ts';

/** An archive that was read and proved from beginning to end, and what of it the database keeps. */
export interface VerifiedArchive extends WrittenFile {
  readonly header: ArchiveHeader;
  /** Key id of the key that has signed it. */
  readonly kid: string;
  readonly groups: number;
  readonly operations: number;
  readonly transfers: number;
  readonly receipts: number;
  readonly opening: number;
  readonly closing: readonly ClosingBalance[];
  readonly leftovers: readonly LeftMovement[];
  readonly openCalls: readonly string[];
  readonly ends: readonly ChainEnd[];
  readonly sums: SumsOfArchive;
  /** The digest of `closing`, `leftovers`, `openCalls` and `ends`. */
  readonly closingDigest: string;
  readonly transfersDigest: string;
}

interface VerifyOptions {
  readonly pace?: () => Promise<void> | undefined;
  /** Called with each line that is right so far. */
  readonly onLine?: (line: ArchiveLine) => void;
}

/**
 * Proves an archive by itself: the seal, the hash chains, each call against the journal, each charge against its
 * price, each receipt, and the balances of all accounts at the end by all movements, whose sum is 0. Rejects with
 * ArchiveError, which says what is wrong. Memory grows with the accounts and the open calls, not with the calls.
 */
export async function verifyArchive(path: string, { pace, onLine }: VerifyOptions = {}): Promise<VerifiedArchive> {
  const check = new Verification();
  const file = await readArchiveFile(
    path,
    (line) => {
      check.take(line);
      onLine?.(line);
    },
    pace,
  );
  return { ...file, ...check.end(file.content) };
}

class Verification {
  #header: ArchiveHeader | null = null;
  #checker: ReceiptChecker | null = null;
  #calls: MatchedCalls | null = null;
  #seal: string | null = null;
  readonly #books = new RunningBooks();
  readonly #chains = new Map<string, { n: number; hash: string }>();
  readonly #sums = new SumsOfArchive();
  readonly #closing: ClosingBalance[] = [];
  readonly #leftovers: LeftMovement[] = [];
  readonly #openCalls: string[] = [];
  readonly #ends: ChainEnd[] = [];
  #groups = 0;
  #operations = 0;
  #opening = 0;

  take(line: ArchiveLine): void {
    if (this.#header === null) {
      if (line[0] !== 'archive') throw new ArchiveError('it does not begin as an archive');
      return this.#begin(line[1]);
    }
    const calls = this.#calls!;
    switch (line[0]) {
      case 'archive':
        throw new ArchiveError('it begins twice');
      case 'opening':
        this.#opening += 1;
        return this.#books.add(line[1], BigInt(line[2]), BigInt(line[3]));
      case 'from':
        return void this.#chains.set(line[1], { n: line[2], hash: line[3] });
      case 'carried':
        return calls.move([line[1], line[2], line[3], line[4], line[5]]);
      case 'group':
        return this.#group(line);
      case 'price':
        return calls.price(line[1], line[2], line[3], line[4]);
      case 'call':
        calls.call(line[1], line[2]);
        return this.#sums.add(line[1], calls.serviceOf(line[1]['price'] as string | null));
      case 'transfer':
        return calls.transfer([line[1], line[2], line[3], line[4], line[5], line[6]]);
      case 'closing':
        return void this.#closing.push({ account: line[1], available: BigInt(line[2]), locked: BigInt(line[3]) });
      case 'left':
        return void this.#leftovers.push([line[1], line[2], line[3], line[4], line[5]]);
      case 'kept':
        return void this.#openCalls.push(line[1]);
      case 'to':
        return void this.#ends.push({ chain: line[1], n: line[2], hash: line[3], position: line[4] });
      case 'seal':
        this.#seal = line[1];
    }
  }

  #begin(header: ArchiveHeader): void {
    if (header.format !== FORMAT)
      throw new ArchiveError(`it has format ${String(header.format)}, and this version reads ${FORMAT}`);
    if (![header.number, header.begins_at, header.ends_at].every(Number.isSafeInteger))
      throw new ArchiveError('its first line does not say which archive it is');
    try {
      this.#checker = createReceiptChecker(header.key);
    } catch (error) {
      throw new ArchiveError('its first line has no public key', { cause: error });
    }
    this.#header = header;
    this.#calls = new MatchedCalls(header.ends_at, this.#checker);
  }

  #group([, form, chain, n, at, count, hash, payload]: Extract<ArchiveLine, readonly ['group', ...unknown[]]>): void {
    const group = { form, chain, n, at, count, hash, payload };
    const before = this.#chains.get(chain) ?? { n: 0, hash: GENESIS };
    if (n !== before.n + 1) throw new ArchiveError(`chain ${chain}: group ${before.n + 1} is missing`);
    if (!isRightGroup(group, before.hash))
      throw new ArchiveError(
        `chain ${chain}, group ${n}: it does not have its hash, or does not follow the one before`,
      );
    this.#chains.set(chain, { n, hash });
    const movements = movementsOfGroup(group);
    for (const [position, [movement, time]] of movements.entries()) {
      this.#books.move(movement);
      this.#calls!.move([chain, n, position, movement, time]);
    }
    this.#groups += 1;
    this.#operations += movements.length;
  }

  end(content: string): Omit<VerifiedArchive, keyof WrittenFile> {
    const header = this.#header!;
    this.#checkSeal(content, header);
    const sum = this.#books.sum();
    if (sum !== 0n) throw new ArchiveError(`its movements sum to ${sum} micro-USD, not to 0`);
    this.#checkClosing();
    for (const { chain, n, hash } of this.#ends) {
      const own = this.#chains.get(chain);
      if (own?.n !== n || own.hash !== hash)
        throw new ArchiveError(`chain ${chain} does not end where the archive says`);
    }
    if (this.#ends.length !== this.#chains.size) throw new ArchiveError('a chain has no end');
    const transfersDigest = this.#calls!.end(this.#leftovers, this.#openCalls);
    const digest = new ClosingDigest();
    for (const one of this.#closing) digest.balance(one);
    for (const one of this.#leftovers) digest.movement(one);
    for (const one of this.#openCalls) digest.addOpenCall(one);
    for (const one of this.#ends) digest.chain(one);
    return {
      header,
      kid: this.#checker!.kid,
      groups: this.#groups,
      operations: this.#operations,
      transfers: this.#calls!.transfers,
      receipts: this.#calls!.receipts,
      opening: this.#opening,
      closing: this.#closing,
      leftovers: this.#leftovers,
      openCalls: this.#openCalls,
      ends: this.#ends,
      sums: this.#sums,
      closingDigest: digest.digest(),
      transfersDigest,
    };
  }

  #checkSeal(content: string, { number, begins_at, ends_at, previous }: ArchiveHeader): void {
    const claims = this.#checker!.archiveClaims(this.#seal!);
    if (claims === null) throw new ArchiveError('its seal was not made with its key');
    const isSame =
      claims['content'] === content &&
      claims['number'] === number &&
      claims['begins_at'] === begins_at &&
      claims['ends_at'] === ends_at &&
      claims['previous'] === (previous?.content ?? null);
    if (!isSame) throw new ArchiveError('its content is not what the gateway sealed');
  }

  #checkClosing(): void {
    const books = this.#books.balances();
    const balances = this.#closing;
    if (books.length !== balances.length)
      throw new ArchiveError('it does not name the balance of each account at its end');
    for (const [index, { account, available, locked }] of books.entries()) {
      const own = balances[index]!;
      if (own.account !== account || own.available !== available || own.locked !== locked)
        throw new ArchiveError(
          `the balance of ${account} at its end is ${available} available and ${locked} locked by the movements, and the archive says otherwise`,
        );
    }
  }
}

/** The hash before the first group of a chain. */
const GENESIS = '0'.repeat(64);

import { listParam, loadStatements, type Query, type Row, type RunProgram } from '#store';
import type { MovementTexts } from '../ledger/log-movements.ts';
import { toLock } from '../ledger/ledger-rows.ts';
import type { LockRecord } from '../ledger/ledger.ts';
import type { Receipt, ReceiptSigner } from '../receipt.ts';
import { ArchiveError, callOf, FORMAT, type LeftMovement, type ArchiveLine } from './archive-lines.ts';
import type { ArchivePlan } from './archive-plan.ts';
import { closingBalances, leftMovements, transferFields } from './closing-rows.ts';
import { groupsBetween, movementsOfGroup, type JournalGroup } from './journal-groups.ts';
import { RunningBooks } from './running-books.ts';

interface ContentOptions {
  readonly query: Query;
  readonly program: RunProgram | null;
  readonly plan: ArchivePlan;
  readonly signer: ReceiptSigner;
  /** The receipt of a settled call; null for one that has none. */
  readonly receiptOf: (record: LockRecord) => Receipt | null;
  readonly onGroups: (groups: number) => void;
  /** Called after each call. */
  readonly pace: () => Promise<void> | undefined;
}

const SQL = loadStatements(import.meta.url, '../sql/archive.sql', [
  'findManyLocks',
  'findManyTransfers',
  'findManyPrices',
]);

const RESOLVES: ReadonlySet<MovementTexts[0]> = new Set(['settle', 'release', 'expire']);

/**
 * The lines of an archive: what held at its beginning, the groups of the journal, after each group the calls that it
 * resolves and the transfers that it makes, and what holds at the end. A call whose tree of calls is open at the end
 * has no line: its movements are among those that are left.
 */
export async function* archiveContent(
  options: ContentOptions,
): AsyncGenerator<readonly ArchiveLine[], void, undefined> {
  const { query, program, plan, onGroups } = options;
  const { number, previous, beginsAt, endsAt, from, to, openCalls } = plan;
  const books = new RunningBooks();
  const page = createPages(options);
  yield [
    [
      'archive',
      {
        format: FORMAT,
        number,
        begins_at: beginsAt,
        ends_at: endsAt,
        previous: previous && { name: previous.name, content: previous.content },
        key: options.signer.jwks().keys[0]!,
      },
    ],
  ];
  if (previous !== null) {
    for await (const rows of closingBalances(query, previous.number)) {
      for (const { account, available, locked } of rows) books.add(account, available, locked);
      yield rows.map(({ account, available, locked }) => ['opening', account, `${available}`, `${locked}`]);
    }
    yield from.map(({ chain, n, hash, position }) => ['from', chain, n, hash, position]);
    for await (const rows of leftMovements(query, previous.number)) {
      yield rows.map((row) => ['carried', ...row]);
      yield await page.linesOf(rows);
    }
  }
  for await (const groups of groupsBetween(query, program, from, to)) {
    const moved = groups.map((group) => movementsIn(group));
    for (const movements of moved) for (const [, , , movement] of movements) books.move(movement);
    await page.read(moved.flat());
    for (const [index, group] of groups.entries()) yield [groupLine(group), ...(await page.afterGroup(moved[index]!))];
    onGroups(groups.length);
  }
  for (const { account, available, locked } of books.balances())
    yield [['closing', account, `${available}`, `${locked}`]];
  yield page.leftovers.map((row) => ['left', ...row]);
  yield [...openCalls].map((id) => ['kept', id]);
  yield to.map(({ chain, n, hash, position }) => ['to', chain, n, hash, position]);
}

const groupLine = ({ form, chain, n, at, count, hash, payload }: JournalGroup): ArchiveLine => [
  'group',
  form,
  chain,
  n,
  at,
  count,
  hash,
  payload,
];

const movementsIn = (group: JournalGroup): readonly LeftMovement[] =>
  movementsOfGroup(group).map(([movement, at], position) => [group.chain, group.n, position, movement, at]);

/** Reads the calls and transfers of movements, page by page, and tells which of them are in the archive. */
function createPages({ query, plan: { endsAt, openCalls }, signer, receiptOf, pace }: ContentOptions) {
  const remainders: LeftMovement[] = [];
  const priced = new Set<string>();
  let locks = new Map<string, Row>();
  let transfers = new Map<string, Row>();
  let prices = new Map<string, Row>();

  const find = async (statement: typeof SQL.findManyLocks, ids: readonly string[]) =>
    new Map(
      ids.length === 0
        ? []
        : (await query(statement, [listParam(ids)])).map((row) => [row['id'] as string, row] as const),
    );

  const read = async (movements: readonly LeftMovement[]) => {
    const isTransfer = ([, , , [kind]]: LeftMovement) => kind === 'transfer';
    const idsOf = (moves: readonly LeftMovement[]) => [...new Set(moves.map(([, , , [, id]]) => id))];
    locks = await find(SQL.findManyLocks, idsOf(movements.filter((one) => !isTransfer(one))));
    transfers = await find(SQL.findManyTransfers, idsOf(movements.filter(isTransfer)));
    const unknown = [...locks.values()]
      .map((row) => row['price'] as string | null)
      .filter((id) => id !== null && !priced.has(id));
    prices = await find(SQL.findManyPrices, [...new Set(unknown as string[])]);
  };

  const isArchived = (row: Row): boolean =>
    (row['created_at'] as bigint) < endsAt &&
    row['resolved_at'] !== null &&
    (row['resolved_at'] as bigint) < endsAt &&
    !openCalls.has(row['id'] as string);

  const callLines = (row: Row): readonly ArchiveLine[] => {
    const record = toLock(row);
    const receipt = receiptOf(record);
    const price = record.price === null || priced.has(record.price) ? undefined : prices.get(record.price);
    if (record.price !== null) priced.add(record.price);
    const lines: ArchiveLine[] = [];
    if (price !== undefined)
      lines.push([
        'price',
        record.price!,
        price['provider'] as string,
        price['service'] as string,
        price['rates'] as string,
      ]);
    const signature = receipt && signer.sign(receipt).split('.')[2]!;
    lines.push(['call', callOf(row), receipt && [receipt.account, receipt.primitive ?? '', signature!]]);
    return lines;
  };

  const afterGroup = async (movements: readonly LeftMovement[]): Promise<readonly ArchiveLine[]> => {
    const lines: ArchiveLine[] = [];
    for (const moved of movements) {
      const [chain, n, , [kind, id], at] = moved;
      if (kind === 'transfer') {
        const row = transfers.get(id);
        if (row === undefined) throw unknown(`transfer ${id}`, chain, n);
        if (at < endsAt) lines.push(['transfer', ...transferFields(row)]);
        else remainders.push(moved);
        continue;
      }
      const row = locks.get(id);
      if (row === undefined) throw unknown(`lock ${id}`, chain, n);
      if (!isArchived(row)) remainders.push(moved);
      else if (RESOLVES.has(kind)) lines.push(...callLines(row));
      const rest = pace();
      if (rest !== undefined) await rest;
    }
    return lines;
  };

  return {
    /** Movements of calls that are not in the archive, and of later transfers. */
    leftovers: remainders as readonly LeftMovement[],
    read,
    /** The lines of the calls that these movements resolve, and of their transfers. They must have been read. */
    afterGroup,
    async linesOf(movements: readonly LeftMovement[]): Promise<readonly ArchiveLine[]> {
      await read(movements);
      return afterGroup(movements);
    },
  };
}

const unknown = (what: string, chain: string, n: number) =>
  new ArchiveError(`${what} is in the journal (chain ${chain}, group ${n}) and in no table. Run tollgate audit`);

import type { Config } from '#config';
import { type Database, loadStatements } from '#store';
import { createIdentity, type Identity, IdentityError } from '#auth/identity';
import { createSealedTexts } from '#security';
// Not from `#auth`, because a command would then load a whole gateway to read one file.

/* The identity that a database belongs to. A typo in a seed would otherwise begin another one, unnoticed. */

const SQL = loadStatements(import.meta.url, './sql/identity.sql', [
  'addFormerSeed',
  'adoptIdentity',
  'findIdentity',
  'forgetFormerSeeds',
  'listFormerSeeds',
  'noteIdentity',
  'replaceIdentity',
]);

type ReceiptIdentity = Pick<Identity, 'receiptKey'>;

type Seeds = Pick<Config, 'identitySeed' | 'secondIdentitySeed' | 'dataDir'>;

/** A seed of before, as the database has it. */
interface FormerSeed {
  /** Id of the key that signed its receipts. */
  readonly receiptKey: string;
  readonly sealed: string;
  /** Epoch milliseconds. */
  readonly since: number;
  readonly until: number;
}

interface KnownSeeds {
  /** Id of the key that signs its receipts. null before the first gateway. */
  readonly receiptKey: string | null;
  /** Epoch milliseconds. */
  readonly since: number;
  /** The first one first. */
  readonly former: readonly FormerSeed[];
}

const NOTHING_KNOWN: KnownSeeds = { receiptKey: null, since: 0, former: [] };

/**
 * The identity of a configuration, with the seeds of before that the database has. Makes `identity.json` if there is
 * neither a seed nor this file. A gateway whose seed another gateway has replaced takes the second one, if it has it.
 */
export function identityOf(config: Seeds, known: KnownSeeds = NOTHING_KNOWN): Identity {
  const [own, second] = sourcesOf(config);
  const alone = createIdentity(own);
  const isBehind =
    second !== null && isFormer(known, alone) && createIdentity(second).receiptKey.id === known.receiptKey;
  const [source, other] = isBehind ? [second, own] : [own, second];
  const texts = formerTexts(isBehind ? createIdentity(second) : alone);
  const former = known.former.flatMap(({ receiptKey, sealed }) => texts.open(receiptKey, sealed) ?? []);
  return createIdentity(source, { second: other, former });
}

const sourcesOf = ({ identitySeed, secondIdentitySeed, dataDir }: Seeds) =>
  [
    identitySeed === null ? { dataDir } : { seed: identitySeed },
    secondIdentitySeed === null ? null : { seed: secondIdentitySeed },
  ] as const;

const isFormer = ({ former }: KnownSeeds, { receiptKey: { id } }: ReceiptIdentity): boolean =>
  former.some(({ receiptKey }) => receiptKey === id);

const formerTexts = (identity: Pick<Identity, 'secret'>) => createSealedTexts(identity.secret('former seeds'));

export async function knownSeeds(database: Pick<Database, 'query'>): Promise<KnownSeeds> {
  const [row] = await database.query(SQL.findIdentity);
  if (row === undefined) return NOTHING_KNOWN;
  const former = (await database.query(SQL.listFormerSeeds)).map((one) => ({
    receiptKey: one['receipt_key'] as string,
    sealed: one['sealed'] as string,
    since: Number(one['since']),
    until: Number(one['until']),
  }));
  return { receiptKey: row['receipt_key'] as string, since: Number(row['since']), former };
}

/**
 * Lets a database that belongs to the second seed belong to the first one, unless it did before: a gateway that has not
 * got the change yet must not undo it. The database remembers the seeds of before, sealed by the present one. False if
 * there is nothing to replace.
 */
export async function replaceSeed(
  database: Pick<Database, 'query' | 'batch'>,
  config: Seeds,
  now: number,
): Promise<boolean> {
  const { secondIdentitySeed: seed } = config;
  if (seed === null) return false;
  const [present, second, known] = [identityOf(config), createIdentity({ seed }), await knownSeeds(database)];
  const { id } = second.receiptKey;
  if (known.receiptKey !== id || present.receiptKey.id === id || isFormer(known, present)) return false;
  const replaced = { receiptKey: id, seed, since: known.since, until: now };
  const opening = formerTexts(second);
  const seeds = known.former.flatMap(({ sealed, ...one }) => {
    const before = opening.open(one.receiptKey, sealed);
    return before === null ? [] : [{ ...one, seed: before }];
  });
  const texts = formerTexts(present);
  await database.batch([
    { statement: SQL.replaceIdentity, params: [present.receiptKey.id, now, id] },
    ...[...seeds, replaced].map(({ receiptKey, seed: own, since, until }) => ({
      statement: SQL.addFormerSeed,
      params: [receiptKey, texts.seal(receiptKey, own), since, until],
    })),
  ]);
  return true;
}

/** The fault of this identity for a database, as a sentence; null if it is that of the database, or its first. */
export async function identityFault(
  database: Pick<Database, 'query'>,
  { receiptKey: { id } }: ReceiptIdentity,
): Promise<string | null> {
  const [row] = await database.query(SQL.findIdentity);
  if (row === undefined || row['receipt_key'] === id) return null;
  const since = new Date(Number(row['since'])).toISOString();
  return `The database belongs to gateways with the identity ${row['receipt_key'] as string}, known since ${since}. This gateway has the identity ${id}.`;
}

/** Lets a database belong to this identity from now on. It forgets the seeds of before, which this one cannot open. */
export async function adoptIdentity(
  database: Pick<Database, 'query' | 'batch'>,
  { receiptKey: { id } }: ReceiptIdentity,
  now: number,
): Promise<void> {
  await database.batch([
    { statement: SQL.forgetFormerSeeds, params: [] },
    { statement: SQL.adoptIdentity, params: [id, now] },
  ]);
}

/** Gives a database its identity, if it is the first gateway that starts on it. Rejects like refuseOtherIdentity. */
export async function noteIdentity(
  database: Pick<Database, 'query'>,
  identity: ReceiptIdentity,
  now: number,
): Promise<void> {
  await database.query(SQL.noteIdentity, [identity.receiptKey.id, now]);
  await refuseOtherIdentity(database, identity);
}

/** Rejects with IdentityError, whose message says what to do, if the database belongs to another identity. */
export async function refuseOtherIdentity(database: Pick<Database, 'query'>, identity: ReceiptIdentity): Promise<void> {
  const fault = await identityFault(database, identity);
  if (fault === null) return;
  throw new IdentityError(
    `${fault}\n` +
      'Use the seed of the other gateways: TOLLGATE_IDENTITY_SEED (server.identity_seed), or identity.json in the data directory if they have no seed. ' +
      'With another identity, earlier receipts cannot be checked here, and stored secrets, kept responses and webhooks cannot be read.\n' +
      'To change the seed on purpose: set the seed of before as TOLLGATE_SECOND_IDENTITY_SEED (server.second_identity_seed), too. If it is lost: "tollgate restored --adopt-identity".',
  );
}

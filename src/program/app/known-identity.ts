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

type Seeds = Pick<Config, 'identitySeed' | 'previousIdentitySeed' | 'dataDir'>;

/** A seed of before, as the database has it. */
interface FormerSeed {
  readonly receiptKey: string;
  readonly sealed: string;
  /** Epoch milliseconds. */
  readonly since: number;
  readonly until: number;
}

/**
 * The identity of a configuration, with the seeds of before that the database has. Makes `identity.json` if there is
 * neither a seed nor this file.
 */
export function identityOf(config: Seeds, former: readonly FormerSeed[] = []): Identity {
  const { identitySeed, previousIdentitySeed: previous, dataDir } = config;
  const source = identitySeed === null ? { dataDir } : { seed: identitySeed };
  const present = createIdentity(source, { previous, former: [] });
  if (former.length === 0) return present;
  const texts = formerTexts(present);
  const opened = former.flatMap(({ receiptKey, sealed, until }) => {
    const seed = texts.open(receiptKey, sealed);
    return seed === null ? [] : [{ seed, until }];
  });
  return createIdentity(source, { previous, former: opened });
}

const formerTexts = (identity: Pick<Identity, 'secret'>) => createSealedTexts(identity.secret('former seeds'));

export async function formerSeeds(database: Pick<Database, 'query'>): Promise<readonly FormerSeed[]> {
  const rows = await database.query(SQL.listFormerSeeds);
  return rows.map((row) => ({
    receiptKey: row['receipt_key'] as string,
    sealed: row['sealed'] as string,
    since: Number(row['since']),
    until: Number(row['until']),
  }));
}

/**
 * Lets a database that belongs to the previous seed belong to the present one. The database remembers the seeds of
 * before, sealed by the present one. False if there is nothing to replace.
 */
export async function replaceSeed(
  database: Pick<Database, 'query' | 'batch'>,
  config: Seeds,
  now: number,
): Promise<boolean> {
  const { previousIdentitySeed: seed } = config;
  if (seed === null) return false;
  const [present, previous] = [identityOf(config), createIdentity({ seed })];
  const [row] = await database.query(SQL.findIdentity);
  if (row?.['receipt_key'] !== previous.receiptKey.id || present.receiptKey.id === previous.receiptKey.id) return false;
  const replaced = { receiptKey: previous.receiptKey.id, seed, since: Number(row['since']), until: now };
  const opening = formerTexts(previous);
  const seeds = (await formerSeeds(database)).flatMap(({ sealed, ...one }) => {
    const opened = opening.open(one.receiptKey, sealed);
    return opened === null ? [] : [{ ...one, seed: opened }];
  });
  const texts = formerTexts(present);
  await database.batch([
    { statement: SQL.replaceIdentity, params: [present.receiptKey.id, now, previous.receiptKey.id] },
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
      'To change the seed on purpose: stop all gateways, and start them with the new seed and TOLLGATE_PREVIOUS_IDENTITY_SEED (server.previous_identity_seed), the seed of before. Without the seed of before: "tollgate restored --adopt-identity".',
  );
}

import type { Config } from '#config';
import { type Database, loadStatements } from '#store';
import { createIdentity, type Identity, IdentityError } from '#auth/identity';
// Not from `#auth`, because a command would then load a whole gateway to read one file.

/* The identity that a database belongs to. A typo in a seed would otherwise begin another one, unnoticed. */

const SQL = loadStatements(import.meta.url, './sql/identity.sql', ['adoptIdentity', 'findIdentity', 'noteIdentity']);

type ReceiptIdentity = Pick<Identity, 'receiptKey'>;

/** The identity of a configuration. Makes `identity.json` if there is neither a seed nor this file. */
export const identityOf = ({ identitySeed, dataDir }: Pick<Config, 'identitySeed' | 'dataDir'>): Identity =>
  createIdentity(identitySeed === null ? { dataDir } : { seed: identitySeed });

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

/** Lets a database belong to this identity from now on. */
export async function adoptIdentity(
  database: Pick<Database, 'query'>,
  { receiptKey: { id } }: ReceiptIdentity,
  now: number,
): Promise<void> {
  await database.query(SQL.adoptIdentity, [id, now]);
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
      'To change the identity on purpose: stop all gateways, and run "tollgate restored --adopt-identity" with the new seed.',
  );
}

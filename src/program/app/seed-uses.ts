import { SECRET_KEY } from '#authorization';
import { loadStatements } from '#store';
import type { Phases } from './calls.ts';
import { identityOf, knownSeeds } from './known-identity.ts';
import type { Protocols } from './protocols.ts';

const SQL = loadStatements(import.meta.url, './sql/seed-uses.sql', ['countSeedUses', 'listSecretClients']);

/** A kind of thing that only a seed of before can read. Times are epoch milliseconds. */
interface SeedUse {
  readonly what: string;
  readonly count: number;
  /** When the last of it expires. null: it does not. */
  readonly until: number | null;
}

/** Seals anew what is sealed for good, by all that store such a thing. With `count` they only count it. */
async function resealAll(
  { access }: Pick<Phases, 'access'>,
  { work }: Pick<Protocols, 'work'>,
  mode: 'write' | 'count',
): Promise<readonly SeedUse[]> {
  return [
    { what: 'keys at providers', count: await access.providerKeys.reseal(mode), until: null },
    { what: 'webhooks of accounts', count: await work.notices.webhooks.reseal(mode), until: null },
    { what: 'sign-ins of people', count: (await access.people?.reseal(mode)) ?? 0, until: null },
  ];
}

/** Seals by the present seed what accounts have stored for good, and says what the operator does next. */
export async function resealStored(phases: Phases, protocols: Protocols): Promise<void> {
  const { config, database, identity, logger } = phases.foundation;
  const { receiptKey } = identityOf({ ...config, identitySeed: config.secondIdentitySeed, secondIdentitySeed: null });
  const { former } = await knownSeeds(database);
  if (!former.some(({ receiptKey: id }) => id === receiptKey.id)) {
    logger.info(
      { identity: identity.receiptKey.id, second: receiptKey.id },
      'the second identity seed is accepted. When all gateways of this database accept it, start each with the two of them exchanged: server.identity_seed (TOLLGATE_IDENTITY_SEED) and server.second_identity_seed (TOLLGATE_SECOND_IDENTITY_SEED)',
    );
    return;
  }
  const uses = await resealAll(phases, protocols, 'write');
  logger.warn(
    { sealedAnew: Object.fromEntries(uses.map(({ what, count }) => [what, count])), identity: identity.receiptKey.id },
    'remove server.second_identity_seed (TOLLGATE_SECOND_IDENTITY_SEED) when all gateways of this database have started with the new seed: until then, tokens and cookies of both are accepted. The database remembers the seed of before for receipts, files and responses: "tollgate identity" says what depends on it',
  );
}

/** The seeds of the database, without the seeds themselves, and what still depends on those of before. */
export async function seedReport(phases: Phases, protocols: Protocols) {
  const { database, now } = phases.foundation;
  const { receiptKey, since, former } = await knownSeeds(database);
  const uses = former.length === 0 ? [] : [...(await resealAll(phases, protocols, 'count')), ...(await expiring())];
  return { receiptKey: receiptKey!, since, former, uses: uses.filter(({ count }) => count > 0) };

  async function expiring(): Promise<readonly SeedUse[]> {
    const counted = await database.query(SQL.countSeedUses, [since]);
    const clients = (await database.query(SQL.listSecretClients, [now()])).flatMap((row) => {
      const { [SECRET_KEY]: key, token_endpoint_auth_method: method } = JSON.parse(row['payload'] as string) as Record<
        string,
        unknown
      >;
      const isOld = String(method).startsWith('client_secret_') && key !== receiptKey;
      return isOld ? [Number(row['expires_at'])] : [];
    });
    return [
      ...counted.map((row) => ({
        what: row['what'] as string,
        count: Number(row['count']),
        until: row['until'] === null ? null : Number(row['until']),
      })),
      { what: 'secrets of programs that sign in', count: clients.length, until: Math.max(...clients) },
    ];
  }
}

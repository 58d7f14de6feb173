import { isDeepStrictEqual } from 'node:util';
import { loadStatements, type Database } from '#store';
import { foldName, type Service } from '#config';
import { ownTurn } from '#wire';
import type { RaisedPrice } from '../tunnel-wire.ts';
import { RegistrationError } from './document.ts';
import type { GroupWrites } from './group-writes.ts';
import type { ProviderListing } from './listing.ts';
import type { ProxyConnection } from './presence.ts';
import {
  nextPastPrices,
  pastPricesFromText,
  pastPricesToText,
  withRaises,
  registeredOf,
  servicesFromText,
  servicesToText,
  withTimes,
  type RegisteredService,
} from './registered-services.ts';
import {
  createReservedNames,
  isOfGateway,
  NAMES_KEPT_MS,
  type ReservedNames,
  namesSteps,
  refuseAmbiguousKeys,
} from './service-names.ts';

/** A provider's last registration. Times are epoch milliseconds. */
interface Registration {
  readonly services: readonly RegisteredService[];
  /** Grows with every change of the services. */
  readonly revision: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** null while no proxy is connected. */
  readonly connected: { readonly since: number; readonly node: string } | null;
}

export interface RegistrationsOptions {
  readonly database: Pick<Database, 'query' | 'engine'>;
  readonly writes: GroupWrites;
  readonly listing: Pick<ProviderListing, 'put'>;
  readonly isOpen: (connection: ProxyConnection) => boolean;
  /** Epoch milliseconds, for the database. */
  readonly now: () => number;
  /** Names that no proxy may register. They may change. Default: those of the gateway itself. */
  readonly reservedNames?: ReservedNames;
  /** How long after a price jump calls must accept the new price explicitly. Default 0: never. */
  readonly priceNoticeMs?: number;
}

const SQL = loadStatements(import.meta.url, './sql/registrations.sql', [
  'findRegistration',
  'findNameOwner',
  'freeName',
  'putRegistration',
  'noteRegistration',
]);

/** Only a provider's newest connection writes, so a second attempt is rare. */
const ATTEMPTS = 5;

export interface Registrations {
  /**
   * Replaces the provider's services. Unchanged services cause no write. When it resolves, this gateway lists them.
   * Rejects with RegistrationError if another provider has the name, with ConnectionSuperseded if a newer connection
   * took over, or with the database's error. After a rejection the earlier registration stays. `raised`: the services
   * whose prices have a notice now.
   */
  register(
    connection: ProxyConnection,
    services: readonly Service[],
  ): Promise<{ readonly revision: number; readonly raised: readonly RaisedPrice[] }>;
  /** A provider's registration from the database. null if it never registered. */
  registration(provider: string): Promise<Registration | null>;
  /** Rejects with RegistrationError if the name belongs to another provider or is reserved. */
  checkName(provider: string, name: string): Promise<void>;
}

export function createRegistrations(options: RegistrationsOptions): Registrations {
  const { database, writes, listing, isOpen, now, priceNoticeMs = 0, reservedNames = createReservedNames() } = options;

  const checkName: Registrations['checkName'] = async (provider, name) => {
    if (reservedNames.isProvider(name)) throw reservedName(name);
    const [owner] = await database.query(SQL.findNameOwner, [keyOfName(name), now() - NAMES_KEPT_MS]);
    if (owner && owner['provider'] !== provider) throw takenName(name);
  };

  return {
    checkName,

    async register(connection, services) {
      const { provider, account, id } = connection;
      const name = services[0]?.providerName ?? null;
      refuseReserved(services, reservedNames);
      for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
        const [row] = await database.query(SQL.findRegistration, [provider]);
        if (row?.['connection'] !== id || !isOpen(connection)) throw superseded();
        if (name !== null) await checkName(provider, name);
        // Without services a provider keeps the name that it has, if nobody got it meanwhile.
        const nameKey = name === null ? row['name_key'] : keyOfName(name);
        const text = row['document'] as string | null;
        const revision = Number(row['revision'] ?? 0);
        // A thousand services take about 5 ms for each of these steps.
        await ownTurn();
        const before = text === null ? [] : servicesFromText(text);
        await ownTurn();
        const timed = withTimes(services, before, now());
        const newText = servicesToText(timed);
        const known = text === null ? [] : pastPricesFromText(row['past_prices'] as string);
        await ownTurn();
        const names = namesSteps(database, id, services, { provider, now: now(), reserved: reservedNames });
        // A text of another version may have the same fields in another order.
        if (nameKey === row['name_key'] && (newText === text || isDeepStrictEqual(timed, before))) {
          if (row['named'] === null) await writes.submit(names, () => isOpen(connection));
          const registered = withRaises(timed, known);
          await ownTurn();
          listing.put(provider, revision, registered);
          return { revision, raised: raisedIn(registered, now()) };
        }
        const had = new Set(before.map(({ service }) => service.name));
        const added = services.flatMap(({ name: one }) => (had.has(one) ? [] : [one]));
        await refuseAmbiguousKeys(database, added, { provider, now: now(), reserved: reservedNames });
        await ownTurn();
        const past = nextPastPrices(known, before, services, { now: now(), noticeMs: priceNoticeMs });
        const registered = withRaises(timed, past);
        await ownTurn();
        const currentName = name ?? (row['name'] as string | null);
        const pastText = pastPricesToText(past);
        const put = [
          provider,
          account,
          currentName,
          nameKey ?? null,
          newText,
          now(),
          id,
          revision,
          pastText,
          newText.length + pastText.length,
        ];
        const rows = await writes.submit(
          [
            { statement: SQL.freeName, params: [nameKey ?? null, provider, now() - NAMES_KEPT_MS] },
            { statement: SQL.putRegistration, params: put },
            { statement: SQL.noteRegistration, params: [provider, id] },
            ...names,
          ],
          () => isOpen(connection),
        );
        if (rows === null) throw superseded();
        const noted = rows[2]?.[0];
        if (!noted) continue;
        const written = Number(noted['revision']);
        await ownTurn();
        listing.put(provider, written, registered);
        return { revision: written, raised: raisedIn(registered, now()) };
      }
      throw new Error(`the registration of ${provider} was changed by others ${ATTEMPTS} times meanwhile`);
    },

    async registration(provider) {
      const [row] = await database.query(SQL.findRegistration, [provider]);
      if (!row || row['document'] === null) return null;
      return {
        services: registeredOf(row),
        revision: Number(row['revision']),
        createdAt: Number(row['created_at']),
        updatedAt: Number(row['updated_at']),
        connected: row['left_at'] === null ? { since: Number(row['connected_at']), node: row['node'] as string } : null,
      };
    },
  };
}

/** Names that differ only in spaces, dots, hyphens, underscores or case count as the same. */
const keyOfName = (name: string): string => name.toLowerCase().replaceAll(/[ ._-]/g, '');

function refuseReserved(services: readonly Service[], reservedNames: ReservedNames): void {
  const problems = services.flatMap(({ name }) => {
    const own = reservedNames.ofService(name);
    if (own === null) return [];
    const whose = isOfGateway(own) ? 'a name of this gateway itself' : "a service of this gateway's operator";
    const isBelow = !isOfGateway(own) && foldName(name) !== foldName(own);
    const like = isBelow ? 'has the same first part as' : 'looks like';
    const wrong = own === name ? `"${name}" is ${whose}` : `"${name}" ${like} "${own}", ${whose}`;
    const right = isOfGateway(own)
      ? 'another name'
      : 'another name, or ask the operator to list it in tunnel.shared_names';
    return [{ key: 'name', wrong, right }];
  });
  if (problems.length > 0) throw new RegistrationError(problems);
}

const superseded = () => new ConnectionSuperseded('a newer connection of this provider took over');

const reservedName = (name: string) =>
  new RegistrationError([
    {
      key: 'provider_name',
      wrong: `"${name}" is reserved: it is, or looks like, a name of this gateway or of its operator`,
      right: "another name. Without provider_name, the part of the service's name before the first / is used",
    },
  ]);

const takenName = (name: string) =>
  new RegistrationError([
    {
      key: 'provider_name',
      wrong: 'is taken by another provider',
      right: `a free name instead of "${name}". Without provider_name, the part of the service's name before the first / is used`,
    },
  ]);

/** A newer connection of the same provider replaced this one, or this one has ended. */
export class ConnectionSuperseded extends Error {
  override readonly name = 'ConnectionSuperseded';
}

const raisedIn = (services: readonly RegisteredService[], now: number): readonly RaisedPrice[] =>
  services.flatMap(({ service, raised }) =>
    raised === undefined || raised.until <= now
      ? []
      : [{ service: service.name, until: new Date(raised.until).toISOString() }],
  );

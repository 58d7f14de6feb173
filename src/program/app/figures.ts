import {
  createKnownAccounts,
  createOldUsage,
  createRollUp,
  findRecentTimes,
  recentUsers,
  type RollUp,
} from '#analytics';
import type { Catalog, OfferFigures } from '#catalog';
import type { DueWorker } from '#store';
import { createFigurePages, ownFiguresRoutes, publicFiguresRoutes } from '#pages';
import type { Phases } from './calls.ts';
import type { Foundation } from './foundation.ts';
import { API, mount } from './mount.ts';
import { costsOfCatalog } from './paid-offers.ts';
import type { Swept } from './sweeper.ts';

const ACCOUNTS_MS = 60_000;
/** With fewer users, the volume of a day reveals what each of them pays. */
const FEW_USERS = 5;

export interface Analytics {
  readonly rollUp: RollUp;
  readonly accounts: DueWorker;
  /** Rows of usage whose time is over. */
  readonly oldUsage: Swept;
}

/** The figures of calls by day, and the count of new accounts. Both follow the journal. */
export async function openAnalytics(
  foundation: Foundation,
  health: OfferFigures,
  catalog: Pick<Catalog, 'offers'>,
): Promise<Analytics> {
  const { config, database, outages, resources, now } = foundation;
  const { everyMs, retentionDays } = config.analytics;
  const isOff = everyMs === 0;
  const rollUp = createRollUp({
    database,
    now,
    everyMs: isOff ? null : everyMs,
    costs: () => costsOfCatalog(catalog.offers()),
    onError: (error) =>
      outages.failed('figures', { err: error }, 'calls cannot be added to the figures; it is tried again'),
    ...(database.engine === 'sqlite' ? { end: () => database.log.head.n } : {}),
  });
  resources.defer(() => rollUp.close());
  const accounts = createKnownAccounts({
    database,
    now,
    everyMs: isOff ? null : ACCOUNTS_MS,
    onError: (error) => outages.failed('accounts', { err: error }, 'new accounts cannot be counted; it is tried again'),
  });
  resources.defer(() => accounts.close());
  await warnOfFewUsers(foundation);
  await recallTimes(foundation, health);
  return { rollUp, accounts, oldUsage: createOldUsage({ database, now, days: retentionDays }) };
}

/** Restores the recent speeds of offers from before the start, because routing uses them. New calls replace them. */
async function recallTimes({ database, now }: Foundation, health: OfferFigures): Promise<void> {
  for (const { offer, firstByteMs, tokensPerSecond } of await findRecentTimes(database.query, now()))
    health.recall(offer, firstByteMs, tokensPerSecond);
}

/** Warns if the public figures would reveal the spending of single users, because the market has few. */
async function warnOfFewUsers({ config, database, logger, now }: Foundation): Promise<void> {
  const { public: isPublic, usersMin } = config.analytics;
  if (config.mode !== 'production' || isPublic === 'off' || usersMin > 0) return;
  const users = await recentUsers(database, now());
  if (users === 0 || users >= FEW_USERS) return;
  logger.warn(
    { users },
    'the public figures show what few users pay: analytics.users_min keeps such days back, analytics.public = "off" all of them',
  );
}

export async function mountFigures({ foundation, access, calls }: Phases, { rollUp }: Analytics): Promise<void> {
  const { config, database, now } = foundation;
  const { http, keys } = access;
  const { catalog, server } = http;
  const { admit } = calls.pipeline;
  const pages = createFigurePages(database, rollUp);
  const figures = {
    publicFigures: publicFiguresRoutes({ config, pages, database, catalog, now }),
    ownFigures: ownFiguresRoutes({ admit, keys, database, catalog, now, publicUrl: config.publicUrl }),
  };
  await mount(server, figures, API);
}

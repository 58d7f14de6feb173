import { createKnownAccounts, createOldUsage, createRollUp, findRecentTimes, recentUsers } from '#analytics';
import type { Protocols } from './protocols.ts';

const ACCOUNTS_MS = 60_000;
/** With fewer users, the volume of a day reveals what each of them pays. */
const FEW_USERS = 5;

export type Analytics = Awaited<ReturnType<typeof openAnalytics>>;

/** The figures of calls by day, and the count of new accounts. Both follow the journal. */
export async function openAnalytics(protocols: Protocols) {
  const { config, database, outages, opened, now } = protocols;
  const { everyMs, retentionDays } = config.analytics;
  const isOff = everyMs === 0;
  const rollUp = createRollUp({
    database,
    now,
    everyMs: isOff ? null : everyMs,
    onError: (error) =>
      outages.failed('figures', { err: error }, 'calls cannot be added to the figures; it is tried again'),
    ...(database.engine === 'sqlite' ? { end: () => database.log.head.n } : {}),
  });
  opened.defer(() => rollUp.close());
  const accounts = createKnownAccounts({
    database,
    now,
    everyMs: isOff ? null : ACCOUNTS_MS,
    onError: (error) => outages.failed('accounts', { err: error }, 'new accounts cannot be counted; it is tried again'),
  });
  opened.defer(() => accounts.close());
  await warnOfFewUsers(protocols);
  await recallTimes(protocols);
  return { rollUp, accounts, oldUsage: createOldUsage({ database, now, days: retentionDays }) };
}

/** Restores the recent speeds of offers from before the start, because routing uses them. New calls replace them. */
async function recallTimes({ database, health, now }: Protocols): Promise<void> {
  for (const { offer, firstByteMs, tokensPerSecond } of await findRecentTimes(database.query, now()))
    health.recall(offer, firstByteMs, tokensPerSecond);
}

/** Warns if the public figures would reveal the spending of single users, because the market has few. */
async function warnOfFewUsers({ config, database, logger, now }: Protocols): Promise<void> {
  const { public: isPublic, usersMin } = config.analytics;
  if (config.mode !== 'production' || isPublic === 'off' || usersMin > 0) return;
  const users = await recentUsers(database, now());
  if (users === 0 || users >= FEW_USERS) return;
  logger.warn(
    { users },
    'the public figures show what few users pay: analytics.users_min keeps such days back, analytics.public = "off" all of them',
  );
}

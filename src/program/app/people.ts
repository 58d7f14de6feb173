import { type ConsumerStore, createConsumerStore, type LimitsStore, type MemberStore } from '#accounts';
import {
  createPeople,
  createPeopleProvider,
  createPeopleStore,
  type KeyStore,
  type People,
  type WebSessions,
} from '#auth';
import type { Foundation } from './foundation.ts';

interface PeopleParts {
  readonly sessions: WebSessions;
  readonly keys: KeyStore;
  readonly members: MemberStore;
  readonly limits: LimitsStore;
}

/** The company's people, and their provider. null if none is configured. */
export type OpenPeople = ReturnType<typeof openPeople>;

/** Of three reads by an index. How often a person is asked about is `people.refresh_ms`. */
const FOLLOW_MS = 5_000;

export function openPeople(foundation: Foundation, { sessions, keys, members, limits }: PeopleParts) {
  const { config, database, identity, logger, outages, resources, now, elapsed } = foundation;
  const { issuer } = config.people;
  if (issuer === null) return null;
  const own = { ...config.people, issuer };
  const onError = (error: unknown) =>
    outages.failed('provider of people', { err: error }, 'a sign-in at the provider of the company failed');
  const provider = createPeopleProvider({ config: own, elapsed, now, onError });
  const consumers: ConsumerStore = createConsumerStore(database, { now });
  const store = createPeopleStore(database, { secret: identity.secrets('tokens of people'), now });
  const people: People = createPeople({
    config: own,
    provider,
    store,
    sessions,
    keys,
    members,
    limits,
    consumers,
    onAway: onError,
    onUnclear: (account) =>
      logger.warn(
        { account },
        'the answer of the provider about a person was lost, and it takes the old refresh token no more: the person has to sign in again',
      ),
    now,
  });
  let running: Promise<void> | null = null;
  let again = false;
  const follow = () => {
    running ??= people
      .follow()
      .catch((error: unknown) =>
        outages.failed('people', { err: error }, 'the people of the company could not be followed; it is tried again'),
      )
      .finally(() => {
        running = null;
        if (again) soon();
      });
  };
  /** Asks at once, or after those who are asked about now. */
  const soon = () => {
    again = running !== null;
    if (!again) follow();
  };
  const timer = setInterval(follow, FOLLOW_MS);
  follow();
  resources.defer(async () => {
    clearInterval(timer);
    again = false;
    await running;
  });
  const logout: People['logout'] = async (token) => {
    await people.logout(token);
    soon();
  };
  return { ...people, logout, provider, onError, reseal: store.reseal };
}

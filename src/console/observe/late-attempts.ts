import { dropOldest } from '#wire';
import type { Logger } from './logger.ts';
import type { OfferAttempts, RunningAttempts } from './running-attempts.ts';

interface LateAttemptsOptions {
  readonly running: Pick<RunningAttempts, 'places'>;
  readonly logger: Pick<Logger, 'warn'>;
  /** `upstream.head_timeout_ms`. */
  readonly headTimeoutMs: number;
  /** Milliseconds; the clock of `call.begunAt`. */
  readonly now: () => number;
}

const LOOK_MS_MAX = 5_000;
/** A service has a line in so many milliseconds. */
const EVERY_MS = 60_000;
const REMEMBERED_MAX = 1_000;

const TEXT =
  'calls wait for a provider that does not begin its answer: look whether it works. ' +
  'With a lower head_timeout_ms they go on to another provider sooner; without its block and after a reload, none is sent to it';

/**
 * Warns of a service whose oldest attempt has waited for the beginning of its answer for half of the time that it may:
 * once a minute for each service, which names the provider that lets it wait longest.
 */
export function watchLateAttempts({ running, logger, headTimeoutMs, now }: LateAttemptsOptions): { close(): void } {
  const reports = new Map<string, number>();
  const timeoutOf = ({ offer: { endpoint } }: OfferAttempts): number =>
    (endpoint.kind === 'direct' ? endpoint.timeouts?.headMs : null) ?? headTimeoutMs;
  const check = () => {
    const at = now();
    const late = new Map<string, OfferAttempts>();
    for (const place of running.places()) {
      if (place.oldest === null || at - place.oldest.waitsSince < timeoutOf(place) / 2) continue;
      const { service } = place.offer;
      const other = late.get(service)?.oldest ?? null;
      if (other === null || place.oldest.waitsSince < other.waitsSince) late.set(service, place);
    }
    for (const [service, place] of late) {
      if (at - (reports.get(service) ?? -Infinity) < EVERY_MS) continue;
      reports.delete(service);
      reports.set(service, at);
      dropOldest(reports, REMEMBERED_MAX);
      const { offer, waiting, oldest } = place;
      logger.warn(
        {
          service,
          provider: offer.provider.name,
          waiting,
          oldest_s: Math.round((at - oldest!.waitsSince) / 1_000),
          timeout_s: timeoutOf(place) / 1_000,
        },
        TEXT,
      );
    }
  };
  const timer = setInterval(check, Math.max(100, Math.min(LOOK_MS_MAX, headTimeoutMs / 8)));
  timer.unref();
  return { close: () => clearInterval(timer) };
}

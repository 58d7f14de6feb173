import { RegistrationError } from '../registry/document.ts';
import { ConnectionSuperseded, type Connection, type Registry } from '../registry/registry.ts';
import type { AdmittedProvider } from './admit-provider.ts';
import { checkRegistration, type RegistrationRules } from './check-registration.ts';
import type { ControlStream } from './control-stream.ts';
import type { TunnelObserver } from './tunnels.ts';
import type { ProxyMessage } from './wire.ts';

/** Close codes of RFC 6455 and of the IANA registry. */
export const CLOSE = { normal: 1000, goingAway: 1001, policyViolation: 1008, tryAgainLater: 1013 } as const;

export interface RegistrationLimits {
  /** Registrations in a burst, and the milliseconds after which one more is allowed. */
  readonly registrationBurst: number;
  readonly registrationIntervalMs: number;
}

interface RegistrarOptions {
  readonly connection: Connection;
  readonly admitted: AdmittedProvider;
  /** The text that the signatures of this connection's registrations must contain. */
  readonly challenge: string;
  readonly registry: Pick<Registry, 'join' | 'register'>;
  readonly rules: RegistrationRules;
  readonly observer: TunnelObserver;
  readonly limits: RegistrationLimits;
  readonly control: () => ControlStream;
  /** `open`: before the first registration. `serving`: calls may come. `ending`: the tunnel accepts no new calls. */
  readonly state: () => 'open' | 'serving' | 'ending';
  /** Called when the first registration is valid. Calls may come from then on. */
  readonly serve: () => void;
  readonly replaced: () => void;
  readonly end: (code: number, why: string) => void;
}

/** Handles the registrations of one tunnel's proxy. The result never rejects. */
export function createRegistrar(
  options: RegistrarOptions,
): (message: Extract<ProxyMessage, { type: 'register' }>) => Promise<void> {
  const { connection, registry, observer, control, state, end } = options;
  const tooFast = createRate(options.limits);

  function refuse({ message, problems }: RegistrationError, first: boolean): void {
    observer.refused?.(connection, message, problems);
    control().sayLast({ type: 'refused', message, problems }, () => {
      // The tunnel serves nothing, and it may have replaced a working connection of its provider.
      if (first) end(CLOSE.policyViolation, 'its first registration was refused');
    });
  }

  return async (message) => {
    if (state() === 'ending') return;
    if (tooFast()) return end(CLOSE.policyViolation, 'registrations come too fast');
    let first = false;
    try {
      const services = await checkRegistration(message, options.admitted, options.challenge, options.rules);
      if (state() === 'open') {
        // The tunnel must accept calls before it joins, because waiting calls come as soon as the registry knows it.
        options.serve();
        first = true;
        await registry.join(connection, services[0]?.providerName);
      }
      const { revision } = await registry.register(connection, services);
      if (state() !== 'serving') return;
      observer.registered?.(connection, { services: services.length, revision });
      control().say({ type: 'registered', revision, services: services.map(({ name }) => name) });
    } catch (error) {
      if (error instanceof RegistrationError) return refuse(error, first);
      if (state() === 'ending') return;
      if (error instanceof ConnectionSuperseded) return options.replaced();
      observer.failed?.(connection, error);
      end(CLOSE.tryAgainLater, 'the registry cannot be reached at the moment');
    }
  };
}

/** A function to call for each registration. It returns true if the registration exceeds the rate limit. */
function createRate({
  registrationBurst: burst,
  registrationIntervalMs: intervalMs,
}: RegistrationLimits): () => boolean {
  let due = 0;
  return () => {
    const now = performance.now();
    due = Math.max(due, now) + intervalMs;
    return due - now > burst * intervalMs;
  };
}

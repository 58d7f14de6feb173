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
  /** Registrations at once, and the time in which one more may come. */
  readonly registrationBurst: number;
  readonly registrationIntervalMs: number;
}

interface RegistrarOptions {
  readonly connection: Connection;
  readonly admitted: AdmittedProvider;
  /** The text that this connection's registrations must carry. */
  readonly challenge: string;
  readonly registry: Pick<Registry, 'join' | 'register'>;
  readonly rules: RegistrationRules;
  readonly observer: TunnelObserver;
  readonly limits: RegistrationLimits;
  readonly control: () => ControlStream;
  /** `open`: nothing is registered yet. `serving`: calls may come. `ending`: the tunnel takes no new calls. */
  readonly state: () => 'open' | 'serving' | 'ending';
  /** The first registration is good: calls may come. */
  readonly serve: () => void;
  readonly replaced: () => void;
  readonly end: (code: number, why: string) => void;
}

/** Takes what the proxy of one tunnel registers. Never rejects. */
export function createRegistrar(
  options: RegistrarOptions,
): (message: Extract<ProxyMessage, { type: 'register' }>) => Promise<void> {
  const { connection, registry, observer, control, state, end } = options;
  const tooFast = createRate(options.limits);

  function refuse({ message, problems }: RegistrationError, first: boolean): void {
    observer.refused?.(connection, message, problems);
    control().sayLast({ type: 'refused', message, problems }, () => {
      // It serves nothing, and may have taken its provider's place for nothing.
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
        // Calls may wait for it: they come as soon as the registry knows of it.
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

/** Tells of each registration whether it came too fast. */
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

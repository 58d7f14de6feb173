import { createAttempts } from '../../../../src/gateway/auth/attempts.ts';
import { createSignIn, type SignIn, type SignInOptions } from '../../../../src/gateway/auth/siwx/sign-in.ts';
import { DOMAIN, START } from './wallets.ts';

export interface SignInWorld {
  readonly clock: { now: number };
  readonly signIn: SignIn;
  /** Signs in as a client at 192.0.2.1, as the authenticator does. */
  readonly enter: (header: string, address?: string) => Promise<Awaited<ReturnType<SignIn['verify']>>>;
}

/** Sign-in as a gateway at `gateway.example` has it, with a clock of its own. */
export async function openSignIn(
  options: Partial<SignInOptions> & { readonly failuresPerMinute?: number } = {},
): Promise<SignInWorld> {
  const { failuresPerMinute = 1_000_000, ...rest } = options;
  const clock = { now: START };
  const now = () => clock.now;
  const attempts = createAttempts({ perMinute: failuresPerMinute, now });
  const signIn = await createSignIn({
    domains: [DOMAIN, 'localhost:8402'],
    lifetimeMsMax: 3_600_000,
    skewMs: 30_000,
    chains: [],
    attempts,
    now,
    elapsed: now,
    ...rest,
  });
  return {
    clock,
    signIn,
    enter: async (header, address = '192.0.2.1') => signIn.known(header) ?? signIn.verify(header, address),
  };
}

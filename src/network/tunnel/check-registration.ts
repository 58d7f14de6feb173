import { createHash } from 'node:crypto';
import type { Service } from '#config';
import { verifyWalletSignature } from '#auth';
import { readRegistration, RegistrationError } from '../registry/document.ts';
import type { AdmittedProvider } from './admit-provider.ts';
import { registrationText, type ProxyMessage } from './wire.ts';

export interface RegistrationRules {
  /** Domain names of this router. */
  readonly domains: readonly string[];
  readonly servicesMax: number;
}

/**
 * Checks a registration and returns its services. A provider with a wallet must have signed it for this router and for
 * the connection with this challenge. Rejects with RegistrationError.
 */
export async function checkRegistration(
  { document, router, signature }: Extract<ProxyMessage, { type: 'register' }>,
  { provider, account, byKey }: AdmittedProvider,
  challenge: string,
  { domains, servicesMax }: RegistrationRules,
): Promise<readonly Service[]> {
  if (!byKey) {
    if (!domains.includes(router))
      throw wrong(
        'router',
        `is ${JSON.stringify(router.slice(0, 100))}`,
        `a domain of this router: ${domains.join(', ')}`,
      );
    if (signature === null)
      throw wrong('signature', 'is missing', 'the signature of the registration by the wallet that signed in');
    const digest = createHash('sha256').update(document).digest('hex');
    const text = registrationText({ router, provider, challenge, digest });
    if (!(await verifyWalletSignature({ account, text, signature })))
      throw wrong(
        'signature',
        `is not that of ${provider} for this document on this connection`,
        'a signature of the text with the challenge of this connection',
      );
  }
  return readRegistration(document, { servicesMax });
}

function wrong(key: string, what: string, right: string): RegistrationError {
  return new RegistrationError([{ key, wrong: what, right }]);
}

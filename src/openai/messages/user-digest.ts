import { hash } from 'node:crypto';

/**
 * The end user as providers see it: the same for the same user. Clients write an account, a device and a session into
 * the name, which are nobody's business at a provider.
 */
export const userDigest = (user: string): string => hash('sha256', user).slice(0, 32);

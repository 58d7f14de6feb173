import { hash } from 'node:crypto';

/**
 * The end user as providers see it; always the same for the same user. It is a digest, because clients write an
 * account, a device and a session into the name, and a provider should not see these.
 */
export const userDigest = (user: string): string => hash('sha256', user).slice(0, 32);

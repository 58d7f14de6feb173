import { hash } from 'node:crypto';

/*
 * The account of a subject that an authorization server vouches for: `oauth:<issuer>:<subject>`, valid as a CAIP-10
 * id. The issuer is its host with `_` for the dots. If its URL has more than a host (a path, a port), a digest of
 * the whole URL follows, so that two realms of one host are two issuers. The subject is written as it is, with
 * characters that CAIP-10 does not allow percent-encoded. A long subject is replaced by its digest, which is longer
 * than any subject that is written out.
 */

const WRITTEN_LENGTH_MAX = 63;
const REFERENCE_LENGTH_MAX = 32;
const DIGEST_DIGITS = 12;

const FORM = /^oauth:[-_a-z0-9]{1,32}:([-.%a-zA-Z0-9]{1,64})$/;
const DIGEST = /^[0-9a-f]{64}$/;
const HOST = /^[-a-z0-9]+(?:\.[-a-z0-9]+)*$/;

/**
 * Ledger name of the account of a subject. `issuer` is the whole URL as the issuer writes it, `subject` a
 * well-formed text that is not empty.
 */
export function subjectAccount(issuer: string, subject: string): string {
  const written = encode(subject);
  return `oauth:${referenceOf(issuer)}:${written.length <= WRITTEN_LENGTH_MAX ? written : hash('sha256', subject)}`;
}

/**
 * Whether a text is the name of such an account. Each has one name: a character that need not be encoded must not be.
 */
export function isSubjectAccount(text: string): boolean {
  const written = FORM.exec(text)?.[1];
  if (written === undefined) return false;
  if (written.length > WRITTEN_LENGTH_MAX) return DIGEST.test(written);
  try {
    return encode(decodeURIComponent(written)) === written;
  } catch {
    return false;
  }
}

function encode(subject: string): string {
  return encodeURIComponent(subject).replace(
    /[!'()*_~]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function referenceOf(issuer: string): string {
  const { host, hostname } = new URL(issuer);
  const name = hostname.replaceAll('.', '_');
  const isBare = issuer.replace(/\/$/, '') === `https://${host}` && HOST.test(host);
  if (isBare && name.length <= REFERENCE_LENGTH_MAX) return name;
  const head = name.replace(/[^-_a-z0-9]/g, '').slice(0, REFERENCE_LENGTH_MAX - 1 - DIGEST_DIGITS);
  return `${head}_${hash('sha256', issuer).slice(0, DIGEST_DIGITS)}`;
}

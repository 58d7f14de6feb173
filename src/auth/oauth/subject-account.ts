import { hash } from 'node:crypto';

/*
 * The account of a subject of an OAuth issuer: `oauth:<issuer>:<subject>`, which is a valid CAIP-10 id. `<issuer>` is
 * the issuer's host with `_` instead of dots. If the issuer's URL has more than a host, such as a path or a port, or if
 * the host is long, `<issuer>` ends in a digest of the whole URL. So two realms of one host are two issuers.
 * `<subject>` is the subject, with percent-encoding for characters that CAIP-10 does not allow. A long subject is
 * replaced by its SHA-256, which is longer than any subject that is written out.
 */

const WRITTEN_LENGTH_MAX = 63;
const REFERENCE_LENGTH_MAX = 32;
const DIGEST_DIGITS = 12;

const FORM = /^oauth:[-_a-z0-9]{1,32}:([-.%a-zA-Z0-9]{1,64})$/;
const DIGEST = /^[0-9a-f]{64}$/;
const HOST = /^[-a-z0-9]+(?:\.[-a-z0-9]+)*$/;

/**
 * The ledger name of a subject's account. `issuer` is the issuer's whole URL, exactly as the issuer writes it.
 * `subject` is a well-formed text and not empty.
 */
export function subjectAccount(issuer: string, subject: string): string {
  const written = encode(subject);
  return `oauth:${referenceOf(issuer)}:${written.length <= WRITTEN_LENGTH_MAX ? written : hash('sha256', subject)}`;
}

/**
 * Whether a text is the name of such an account. Each account has exactly one name, so a text with a needless
 * percent-encoding is not accepted.
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

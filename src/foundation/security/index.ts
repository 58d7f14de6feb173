export {
  type Trust,
  clientAddress,
  createTrust,
  levelsOfPath,
  networkLevels,
  networkOf,
  placeOf,
} from './client-address.ts';
export {
  type OwnOrigin,
  type RequestedAddress,
  configuredNames,
  createOriginGuard,
  createOwnOrigin,
  isIssuerUrl,
  isLoopback,
  parseHost,
} from './origins.ts';
export { hostOf, isPublicAddress, namesPrivateHost, outboundUrlFault, withoutCredentials } from './outbound-url.ts';
export {
  SERVICE_NAME_MAX,
  CREDENTIAL_HEADERS,
  KEY_HEADERS,
  SIGN_IN_HEADERS,
  type Scrub,
  UNPRINTABLE,
  INVISIBLE,
  createScrubber,
  oneLine,
  printable,
  redact,
  scrubNothing,
  scrubOf,
  visible,
} from './safe-text.ts';
export { type SealSecret, type SealedTexts, type Seals, createSealedTexts, createSeals, secretsOf } from './seals.ts';

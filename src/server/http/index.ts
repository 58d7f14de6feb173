export { type ClientAnswer, createAnswer } from './answer.ts';
export { type HeldBody, PARSED_JSON, bodiesBytesOf, heldBodyOf } from './body-memory.ts';
export { allowPages } from './cors.ts';
export {
  type Dialect,
  HTTP_ERRORS,
  dialectOf,
  errorCodeOf,
  inDialect,
  toHttpError,
  withoutEndSlashes,
} from './error-table.ts';
export { MUST_BE, bodyTypesOf, toGatewayError, unknownMember } from './errors.ts';
export { createHeldMemory } from './held-memory.ts';
export { bodyOrForm, formParts, formSchema } from './form.ts';
export { requestIdOf } from './http-server.ts';
export { requestInside } from './inside.ts';
export { type KeepAlive, createKeepAlive, createSilent } from './keep-alive.ts';
export { FormBody, type PieceSource, PiecedBody } from './pieced-body.ts';
export { type ClientSink, type ReplySink, createHttpSink, endInSlices, slicesOf, writeSlices } from './reply-sink.ts';
export { chunksOf, chunksTooSmall } from './body-chunks.ts';
export { PAYMENT_HEADERS } from './body-sizes.ts';
export { refuseCoding } from './coded-bodies.ts';
export { type MoreMemory, type RequestBodies, UNCOUNTED_BYTES, readBytes } from './request-bodies.ts';
export {
  type CookieKind,
  type WebRequest,
  addressOf,
  admissionOf,
  clientNetworkOf,
  cookieNames,
  cookieValues,
  hasCredentials,
  letCookieCount,
  noteAdmission,
  noteVisitor,
  shownAddress,
  webRequestOf,
} from './request-context.ts';
export {
  DOCUMENTED,
  DOCUMENTED_USD,
  EXAMPLE_MODEL,
  createCheck,
  hasValue,
  nameSchema,
  notTogether,
  numberField,
  objectField,
  onlyIf,
  onlyTogether,
  tokensField,
} from './schemas.ts';
export { type ServerOptions, createServer } from './server.ts';
export { type Drain, closeGracefully, createConnectionRelease, createDrain } from './shutdown.ts';
export { MESSAGE_SOCKET_OPTIONS, MessageSocket } from './message-socket.ts';
export { createSocketServer } from './socket-server.ts';
export { ListedPages, type PageMembers, createPageEntries } from './listed-pages.ts';
export { type TaggedPage, createFreshPage, hasTagged, sendPage, tagOf, tagPage } from './tagged-page.ts';
export { answerMissingPages } from './unknown-routes.ts';
export { addUpgrade, refuseUpgrade } from './upgrades.ts';

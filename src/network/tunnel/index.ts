/*
 * The part of the network that a provider's proxy shares with the gateway: the tunnel, and the registration of
 * services. The proxy loads nothing else of this module.
 */
export { toRegistrationDocument } from '../registry/document.ts';
export { keepAlive, createSocketStream, SOCKET_OPTIONS } from './socket-stream.ts';
export { readEmptyRequest, resetStream } from './stream-end.ts';
export {
  CONSUMER_HEADER,
  CONTROL_LINE_BYTES_MAX,
  CONTROL_PATH,
  type GatewayMessage,
  parseServicePath,
  PROXY_FAILURE_HEADER,
  type ProxyFailure,
  type ProxyMessage,
  type RegistrationProblem,
  registrationText,
  TUNNEL_PROTOCOL,
} from './wire.ts';

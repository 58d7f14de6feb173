export { toRegistrationDocument } from '../registry/document.ts';
export { SOCKET_OPTIONS, createSocketStream, keepAlive } from './socket-stream.ts';
export { readEmptyRequest, resetStream } from './http2-streams.ts';
export {
  CONSUMER_HEADER,
  CONTROL_LINE_BYTES_MAX,
  CONTROL_PATH,
  type GatewayMessage,
  PROXY_FAILURE_HEADER,
  REPEATABLE_HEADER,
  type ProxyFailure,
  type ProxyMessage,
  type RaisedPrice,
  type RegistrationProblem,
  SOCKET_HEADER,
  TUNNEL_PROTOCOL,
  parseServicePath,
  registrationText,
} from '../tunnel-wire.ts';

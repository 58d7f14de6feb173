import { contractSuite } from './contract-suite.ts';
import { gatewayTarget } from './gateway-target.ts';

contractSuite(gatewayTarget('an agent of 0.3 behind the gateway', '0.3', { version: '1.0', binding: 'JSONRPC' }));
contractSuite(gatewayTarget('an agent of 0.3 behind the gateway', '0.3', { version: '1.0', binding: 'HTTP+JSON' }));
contractSuite(gatewayTarget('an agent of 1.0 behind the gateway', '1.0', { version: '0.3', binding: 'JSONRPC' }));

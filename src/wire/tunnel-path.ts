/** The path of the tunnel, relative to the gateway's address. */
export const TUNNEL_PATH = '/api/v1/provider/tunnel';

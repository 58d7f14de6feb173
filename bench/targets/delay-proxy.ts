/* A database that is far away: `node bench/targets/delay-proxy.ts <port> <ms>` forwards connections to a port of this
   machine, and everything in them later by so many milliseconds, in each direction. It prints {"port":n}. */
import { createServer, connect, type AddressInfo, type Socket } from 'node:net';

const [port, ms] = process.argv.slice(2).map(Number) as [number, number];

/** The order is kept, because all timers have the same time. */
function forward(from: Socket, to: Socket): void {
  from.setNoDelay();
  from.on('data', (bytes) => setTimeout(() => to.writable && to.write(bytes), ms));
  from.on('close', () => setTimeout(() => to.destroy(), ms));
  from.on('error', () => {});
}

const server = createServer((near) => {
  const far = connect(port, '127.0.0.1');
  forward(near, far);
  forward(far, near);
});
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ port: (server.address() as AddressInfo).port })));
// Ends with the program that started it.
process.stdin.resume().on('close', () => process.exit());

import {launchChromium} from "./test-support/browsers.js";
import {startFaultyServer} from "./test-support/faulty-server.js";
const s=await startFaultyServer({gzip:true,ranges:false}); s.put("/x.html","<p>",'"a"'); s.put("/m",Buffer.alloc(1000000,7),'"a"');
const b=await launchChromium(); const c=await b.newContext(); const p=await c.newPage(); s.rule("/x.html",1,{});
p.on("requestfailed",r=>console.log("failed",r.method(),r.failure().errorText));
s.manners.cors={exposes:true};
await p.goto("data:text/html,hi");
for (const o of [{method:"HEAD"},{headers:{range:"bytes=0-0"}},{}]) console.log(JSON.stringify(o), await p.evaluate(async([u,o])=>{try{const r=await fetch(u,o);return [r.status,[...r.headers],(await r.arrayBuffer()).byteLength]}catch(e){return String(e)}},[s.at("/m"),o]));
await b.close(); await s.stop();

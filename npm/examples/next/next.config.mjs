/** Static files, in the folder `out`. Without `output` the page runs the same on a server of Next.js. */
export default { output: "export" };

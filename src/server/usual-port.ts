/** Where the window is, unless somebody else is there already. Apart from the server: the doctor only asks for the number. */
export const USUAL_PORT = 4780
